/* Has functions called when a thread ends. */
#include "interpose/host/thread_exit.h"

#include <stddef.h>

int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library);
/* Identifies this library to the C library. The compiler's start files usually define this symbol,
 * but meson.build leaves them out. */
void *__dso_handle __attribute__((weak, visibility("hidden"))) = &__dso_handle;

void bfc_at_thread_exit(bool *registered, void (*function)(void *)) {
    if (!*registered)
        *registered = __cxa_thread_atexit_impl(function, NULL, &__dso_handle) == 0;
}

/* Has functions called at the end of a thread. */
#include "interpose/host/thread_exit.h"

#include <stddef.h>

int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library);
/* A symbol that identifies this library, which the compiler's start files usually define; they are
 * left out (meson.build). */
void *__dso_handle __attribute__((weak, visibility("hidden"))) = &__dso_handle;

void bfc_at_thread_exit(bool *registered, void (*function)(void *)) {
    if (!*registered)
        *registered = __cxa_thread_atexit_impl(function, NULL, &__dso_handle) == 0;
}

/* A number that tells the process's threads apart, at the cost of an addition. */
#ifndef BFC_BASE_THREAD_IDENTITY_H
#define BFC_BASE_THREAD_IDENTITY_H

#include <stdint.h>

#include "base/compiler.h"

extern __thread char bfc_thread_mark INITIAL_EXEC HIDDEN; /* for the function below */

/* The calling thread's number, which is never 0. A later thread may get that of an ended one. */
static inline uintptr_t bfc_thread_identity(void) {
    return (uintptr_t)&bfc_thread_mark;
}

#endif

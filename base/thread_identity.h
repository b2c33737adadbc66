/* Numbers that identify the threads of a process and cost little to compute. */
#ifndef BFC_BASE_THREAD_IDENTITY_H
#define BFC_BASE_THREAD_IDENTITY_H

#include <stdint.h>

#include "base/compiler.h"

/* one such variable for each thread; its address is the thread's number */
extern __thread char bfc_thread_mark INITIAL_EXEC HIDDEN;

/* Returns the calling thread's number, which is never 0. A later thread may get the number of one
 * that has ended. */
static inline uintptr_t bfc_thread_identity(void) {
    return (uintptr_t)&bfc_thread_mark;
}

#endif

/*
 * The program's code that made the call of the CUDA runtime in which the calling thread is: a
 * return address, or 0 outside of such a call. The runtime calls the driver, and so comes back to
 * the library; a walk of the stack then begins at this address, since the runtime's own frames are
 * of no interest to users.
 */
#ifndef BFC_INTERPOSE_PROGRAM_CALLER_H
#define BFC_INTERPOSE_PROGRAM_CALLER_H

#include <stdint.h>

#include "base/compiler.h"

extern __thread uint64_t bfc_program_caller INITIAL_EXEC;

/* Sets the address; returns the one before, to be set again after the call. */
static inline uint64_t bfc_program_caller_set(uint64_t code) {
    uint64_t before = bfc_program_caller;
    bfc_program_caller = code;
    return before;
}

#endif

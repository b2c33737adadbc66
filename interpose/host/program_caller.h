/*
 * Which code of the program made the CUDA runtime call that the calling thread is in: a return
 * address, or 0 outside of such a call. The runtime calls the driver, and so reaches the library's
 * hooks. If a hook records the call stack, the record begins at this address, since the runtime's
 * own frames are of no interest to users.
 */
#ifndef BFC_INTERPOSE_PROGRAM_CALLER_H
#define BFC_INTERPOSE_PROGRAM_CALLER_H

#include <stdint.h>

#include "base/compiler.h"

extern __thread uint64_t bfc_program_caller INITIAL_EXEC;

/* Sets the address and returns the former one, which is to be set again after the runtime's
 * call. */
static inline uint64_t bfc_program_caller_set(uint64_t code) {
    uint64_t before = bfc_program_caller;
    bfc_program_caller = code;
    return before;
}

#endif

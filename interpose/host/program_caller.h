/*
 * Where a call of the program's came from that goes through the CUDA runtime to the driver and so
 * back to the library: a return address in the code that called the runtime; 0: in no such call. A
 * walk of the stack begins there, since the runtime's own frames tell nobody anything. The calling
 * thread's own.
 */
#ifndef BFC_INTERPOSE_PROGRAM_CALLER_H
#define BFC_INTERPOSE_PROGRAM_CALLER_H

#include <stdint.h>

#include "base/compiler.h"

extern __thread uint64_t bfc_program_caller INITIAL_EXEC;

/* Returns what it was before, to be set again after the call. */
static inline uint64_t bfc_program_caller_set(uint64_t code) {
    uint64_t before = bfc_program_caller;
    bfc_program_caller = code;
    return before;
}

#endif

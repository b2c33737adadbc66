/* Hashes of the running program, by which a plan is matched with the program that was recorded. */
#ifndef BFC_INTERPOSE_PROGRAM_H
#define BFC_INTERPOSE_PROGRAM_H

#include <stdint.h>

/* bfc_program_executable_hash hashes the executable's path and first 4096 bytes, in which the build
 * id usually lies; bfc_program_argument_hash, the first 4096 bytes of the arguments. 0: unknown.
 * Thread-safe. */
uint64_t bfc_program_executable_hash(void);
uint64_t bfc_program_argument_hash(void);

#endif

/*
 * Programs: sequences of calls on a pool, made of bytes, run against a plain model of what they
 * must do.
 *
 * One step is 4 bytes: what to do, to which block, how large, under which fence. Any bytes are a
 * program, so that the same runner serves random programs, shrunk ones, and a fuzzer.
 */
#ifndef TESTS_UNIT_POOL_PROGRAM_H
#define TESTS_UNIT_POOL_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/pool/fake_upstream.h"

#define STEP_BYTES 4

/* Runs a program. Returns NULL, or what went wrong (static storage); *step says where. */
const char *program_run(const uint8_t *bytes, size_t count, size_t *step);

/* The same over an upstream one of whose calls goes wrong; *calls, unless NULL, gets the FAKE_CALLS
 * numbers of calls that the upstream got. */
const char *program_run_with(const uint8_t *bytes, size_t count, struct fake_fault fault,
                             unsigned *calls, size_t *step);

/* Fills `bytes` from a seed. */
void program_make(uint64_t seed, uint8_t *bytes, size_t count);

/* Removes steps as long as the program still fails; returns how many bytes are left. */
size_t program_shrink(uint8_t *bytes, size_t count);

#endif

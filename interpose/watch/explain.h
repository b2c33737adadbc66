/*
 * The job's messages on standard error: why an allocation failed, and a summary at exit.
 *
 * Each is one write, so that texts of several processes do not mix. With BFC_LOG=off there are
 * none.
 */
#ifndef BFC_INTERPOSE_EXPLAIN_H
#define BFC_INTERPOSE_EXPLAIN_H

#include "interpose/arena/arena.h"

/*
 * An allocation of `bytes` is about to fail with CUDA_ERROR_OUT_OF_MEMORY. Explains why, at most
 * once in ten seconds, since a program may try and fail often. Thread-safe.
 */
void bfc_explain_out_of_memory(const struct bfc_driver *driver, struct bfc_arena *arena,
                               size_t bytes);

#endif

/*
 * What the job says for itself on standard error: why an allocation failed, and a summary at exit.
 *
 * Each is one write, so that texts of several processes do not mix. Nothing is said with
 * BFC_LOG=off.
 */
#ifndef BFC_INTERPOSE_EXPLAIN_H
#define BFC_INTERPOSE_EXPLAIN_H

#include "interpose/domain.h"

/*
 * An allocation of `bytes` is about to fail with CUDA_ERROR_OUT_OF_MEMORY. Said at most once in ten
 * seconds: a program may try and fail often. Thread-safe.
 */
void bfc_explain_out_of_memory(const struct bfc_driver *driver, struct bfc_domain *domain,
                               size_t bytes);

#endif

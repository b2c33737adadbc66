/*
 * The job's message on standard error that says why an allocation failed. With BFC_LOG=off there is
 * none.
 */
#ifndef BFC_INTERPOSE_EXPLAIN_H
#define BFC_INTERPOSE_EXPLAIN_H

#include "interpose/reuse/call.h"

/*
 * An allocation is about to fail with CUDA_ERROR_OUT_OF_MEMORY: says who holds what, which limit
 * bites, what was tried and what would have helped. A program that fails again and again (one that
 * retries, or probes for a size) gets the text once, and then a line a minute that counts, until it
 * has not failed for a minute. Thread-safe.
 */
void bfc_explain_out_of_memory(const struct bfc_call *call);

#endif

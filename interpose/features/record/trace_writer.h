/*
 * The trace recorder (BFC_RECORD): what the program allocates and frees, as
 * layout/trace.h has it.
 *
 * A call takes one short lock, looks its address up, and puts one record into a buffer in memory; a
 * thread of its own compresses full buffers and appends each with one write, and twice a second
 * what there is. So a full disk or a kill loses the tail only. Buffers are bounded: a program that
 * is faster than the disk waits a little for it, and then loses records, which their numbers show.
 * Nothing is recorded in a forked child. Thread-safe.
 */
#ifndef BFC_INTERPOSE_TRACE_WRITER_H
#define BFC_INTERPOSE_TRACE_WRITER_H

#include "base/compiler.h"
#include "interpose/config/process.h"
#include "interpose/features/record/trace_stacks.h"

#include <cuda.h>

/* After an allocation that succeeded (`host`: with host memory), and after one that failed for want
 * of memory. */
void bfc_trace_allocation(CUdeviceptr pointer, size_t bytes, bool host);
void bfc_trace_out_of_memory(size_t bytes);

/* Before bfc_trace_allocation, by the same thread: the block's call stack was taken (stack_taken of
 * struct bfc_feature). */
void bfc_trace_stack(CUdeviceptr pointer, uint32_t site, double weight,
                     struct bfc_stack_tables (*tables)(void));

/* Before a free, since the address may be another's right after it. */
void bfc_trace_free(CUdeviceptr pointer, CUstream stream);

#endif

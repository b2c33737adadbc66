/*
 * The trace recorder (BFC_RECORD) writes what the program allocates and frees (layout/trace.h).
 *
 * A call takes one short lock, looks its address up, and puts one record into a buffer in memory. A
 * separate thread compresses full buffers and appends each to the file with one write; twice a
 * second it also writes a buffer that is not full. So a full disk or a killed process loses only
 * the end of the trace. The number of buffers is fixed. If the program is faster than the disk, its
 * calls wait for a free buffer, up to about a second, and after that their records are lost, which
 * leaves a gap in the records' numbers. Nothing is recorded in a forked child. Thread-safe.
 *
 * The functions are called through struct bfc_feature, and do nothing without BFC_RECORD.
 */
#ifndef BFC_INTERPOSE_RECORD_H
#define BFC_INTERPOSE_RECORD_H

#include <cuda.h>
#include <stddef.h>

#include "interpose/features/common/stack_tables.h"

/* Records an allocation that succeeded. */
void bfc_trace_allocation(CUdeviceptr pointer, size_t bytes);

/* Records an allocation that failed because there was no memory. */
void bfc_trace_out_of_memory(size_t bytes);

/* Keeps the call stack of an allocation for its record: `site` is the stack's index in the tables
 * that `tables` returns, and `weight` how many blocks the sample stands for. The same thread must
 * call this just before it calls bfc_trace_allocation for the block. */
void bfc_trace_stack(CUdeviceptr pointer, uint32_t site, double weight,
                     struct bfc_stack_tables (*tables)(void));

/* Records a free. To be called before the block is freed: afterwards another thread may get the
 * same address. */
void bfc_trace_free(CUdeviceptr pointer, CUstream stream);

#endif

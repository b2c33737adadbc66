/*
 * The trace recorder (BFC_RECORD) writes what the program allocates and frees (layout/trace.h).
 *
 * A call takes one short lock, looks its address up, and puts one record into a buffer in memory. A
 * separate thread compresses full buffers and appends each to the file with one write; twice a
 * second it also writes a buffer that is not full. So a full disk or a killed process loses only
 * the end of the trace. The buffers are bounded: a program that is faster than the disk first waits
 * for it, up to about a second, and then loses records, which leaves a gap in their numbers.
 * Nothing is recorded in a forked child. Thread-safe.
 *
 * The first four functions are those of struct bfc_feature, and do nothing without BFC_RECORD.
 */
#ifndef BFC_INTERPOSE_RECORD_H
#define BFC_INTERPOSE_RECORD_H

#include <cuda.h>
#include <stddef.h>

#include "interpose/stats/stack_tables.h"

/* Records an allocation that succeeded. */
void bfc_trace_allocation(CUdeviceptr pointer, size_t bytes);

/* Records an allocation that failed because there was no memory. */
void bfc_trace_out_of_memory(size_t bytes);

/* Notes the call stack of a block. The same thread must call this just before it calls
 * bfc_trace_allocation for the block. */
void bfc_trace_stack(CUdeviceptr pointer, uint32_t site, double weight,
                     struct bfc_stack_tables (*tables)(void));

/* Records a free. To be called before the block is freed: afterwards another thread may get the
 * same address. */
void bfc_trace_free(CUdeviceptr pointer, CUstream stream);

/* Sets the function that returns the current tables of stacks, which another feature
 * (interpose/features/who/) fills. Until it is set, traces have no stacks. Thread-safe. */
void bfc_trace_stacks_from(struct bfc_stack_tables (*now)(void));

/* Writes what the tables got since the last call as the payload of one block (layout/trace.h) of at
 * most `room` bytes, which must be BFC_TRACE_STACKS_ROOM or more. Returns the payload's size; 0 if
 * nothing is new. What does not fit is written by the next call. One thread at a time. */
#define BFC_TRACE_STACKS_ROOM ((size_t)256 << 10)
size_t bfc_trace_take_stacks(char *to, size_t room);

#endif

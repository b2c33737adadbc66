/*
 * The call stacks of a trace: copies what another feature (interpose/features/who/) adds to its
 * tables of stacks. Only bfc_trace_stacks_from is thread-safe.
 */
#ifndef BFC_INTERPOSE_TRACE_STACKS_H
#define BFC_INTERPOSE_TRACE_STACKS_H

#include <stddef.h>

#include "interpose/stats/stack_tables.h"
#include "layout/trace.h"

/* Sets the function that returns the current tables of stacks. Until it is set, traces have no
 * stacks. */
void bfc_trace_stacks_from(struct bfc_stack_tables (*now)(void));

/* Writes what the tables got since the last call as the payload of one block (layout/trace.h) of at
 * most `room` bytes, which must be BFC_TRACE_STACKS_ROOM or more. Returns the payload's size; 0 if
 * nothing is new. What does not fit is written by the next call. */
#define BFC_TRACE_STACKS_ROOM ((size_t)256 << 10)
size_t bfc_trace_take_stacks(char *to, size_t room);

#endif

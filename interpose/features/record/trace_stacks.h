/*
 * What a trace tells of call stacks: the tables of another feature, as they grow. One thread, but
 * for bfc_trace_stacks_from.
 */
#ifndef BFC_INTERPOSE_TRACE_STACKS_H
#define BFC_INTERPOSE_TRACE_STACKS_H

#include <stddef.h>

#include "interpose/stats/stack_tables.h"
#include "layout/trace.h"

/* Which function tells what there is now. */
void bfc_trace_stacks_from(struct bfc_stack_tables (*now)(void));

/* What is there and was not taken yet, as a block's payload of at most `room` bytes (at least
 * BFC_TRACE_STACKS_ROOM); returns its size, 0: there is nothing new. */
#define BFC_TRACE_STACKS_ROOM ((size_t)256 << 10)
size_t bfc_trace_take_stacks(char *to, size_t room);

#endif

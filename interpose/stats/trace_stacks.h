/*
 * What a trace tells of call stacks: the tables of interpose/features/who, as they grow. They are
 * handed over by a function, since they stand on a higher floor. One thread, but for
 * bfc_trace_stacks_from.
 */
#ifndef BFC_INTERPOSE_TRACE_STACKS_H
#define BFC_INTERPOSE_TRACE_STACKS_H

#include <stddef.h>

#include "layout/trace.h"
#include "layout/who.h"

struct bfc_trace_stacks {
    const struct bfc_who_site *sites;
    const struct bfc_who_frame *frames;
    const struct bfc_who_object *objects;
    const char *texts;
    struct bfc_trace_counts known; /* how many there are */
};

/* Who tells what there is now. Before the first bfc_trace_stack. */
void bfc_trace_stacks_from(struct bfc_trace_stacks (*now)(void));

/* What is there and was not taken yet, as a block's payload of at most `room` bytes (at least
 * BFC_TRACE_STACKS_ROOM); returns its size, 0: there is nothing new. */
#define BFC_TRACE_STACKS_ROOM ((size_t)256 << 10)
size_t bfc_trace_take_stacks(char *to, size_t room);

#endif

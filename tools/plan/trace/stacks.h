/*
 * Reads and writes the call stacks of a trace file, which are in its blocks of the kind
 * BFC_TRACE_STACKS.
 *
 * Thread-safety: one thread at a time.
 */
#ifndef BFC_PLAN_STACKS_H
#define BFC_PLAN_STACKS_H

#include "layout/trace.h"
#include "tools/job/job_who.h"

struct table {
    char *bytes;
    size_t size; /* bytes that the table has */
};

struct stacks {
    /* tables as in layout/who.h; nothing in them has been checked */
    struct table sites, frames, objects, texts;
    uint32_t executable; /* offset in `texts` of the path of the recorded program */
};

/* Appends the call stacks in `payload`, the content of a block of the trace file. False: the size
 * of the content contradicts the counts in it, or there is no memory. */
bool stacks_append(struct stacks *stacks, const char *payload, size_t size);

/* Returns the content of a block that holds all stacks, `*size` bytes, which the caller frees.
 * NULL: no memory. */
char *stacks_payload(const struct stacks *stacks, size_t *size);

uint32_t stacks_sites(const struct stacks *stacks);

/* Converts the call stacks into the form of a job's answer to bfcstat who (layout/who.h), and
 * checks every index. bfc_who_free frees the answer. False: there are no stacks, they are damaged,
 * or there is no memory. */
bool stacks_who(const struct stacks *stacks, struct bfc_who *who);

void stacks_free(struct stacks *stacks);

#endif

/*
 * The call stacks of a trace: its blocks of BFC_TRACE_STACKS, one after another. Thread-safety: one
 * thread at a time.
 */
#ifndef BFC_PLAN_STACKS_H
#define BFC_PLAN_STACKS_H

#include "layout/trace.h"
#include "tools/job/job_who.h"

struct table {
    char *bytes;
    size_t size; /* in bytes */
};

struct stacks {
    struct table sites, frames, objects, texts; /* tables of layout/who.h, not checked */
    uint32_t executable;                        /* offset in the texts */
};

/* Appends the contents of a block to the stacks. False: their size contradicts the counts in them,
 * or the host has no memory. */
bool stacks_append(struct stacks *stacks, const char *payload, size_t size);

/* Returns the contents of one block that holds all stacks; the caller frees them. NULL: the host
 * has no memory. */
char *stacks_payload(const struct stacks *stacks, size_t *size);

uint32_t stacks_sites(const struct stacks *stacks);

/* Converts the stacks into the form of a job's answer (layout/who.h), with every index checked.
 * Free the answer with bfc_who_free. False: there are no stacks, they are damaged, or the host
 * has no memory. */
bool stacks_who(const struct stacks *stacks, struct bfc_who *who);

void stacks_free(struct stacks *stacks);

#endif

/*
 * Asks a job which call stacks hold its memory, and reads the answer (layout/who.h), trusting
 * nothing in it.
 *
 * Thread-safety: one thread at a time, as bfc_segment_read.
 */
#ifndef BFC_TOOLS_JOB_WHO_H
#define BFC_TOOLS_JOB_WHO_H

#include <stdbool.h>
#include <stddef.h>

#include "layout/who.h"
#include "segment/name.h"

/* A copy of an answer, in which all indexes and offsets are in range; bfc_who_free frees it. */
struct bfc_who {
    struct bfc_who_header header;
    const struct bfc_who_site *sites;
    const struct bfc_who_frame *frames;
    const struct bfc_who_object *objects;
    const struct bfc_who_region *regions;
    const struct bfc_who_block *blocks;
    const struct bfc_who_mark *living, *recent;
    const char *texts;
    void *copy;
    size_t size; /* bytes of the copy */
};

/* Waits at most `timeout_ms` for the job. With `blocks` the answer also lists the blocks of the
 * job's pools. False: `reason` (cut off at `size` bytes) says why, in one line. */
bool bfc_who_ask(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                 bool blocks, struct bfc_who *who, char *reason, size_t size);

/* Reads an answer from a file, to which its `copy` of `size` bytes was written. False: `reason`
 * (cut off at `size` bytes) says why, in one line. */
bool bfc_who_read(const char *path, struct bfc_who *who, char *reason, size_t size);

/* Makes `who` the answer whose whole file is in `bytes`, a block from malloc. bfc_who_free frees
 * the block; if the bytes are not valid (false), the block is freed at once. */
bool bfc_who_adopt(struct bfc_who *who, void *bytes, size_t size);

/* Whether `who` is an answer of the same process as `before`, and of a later moment. */
bool bfc_who_follows(const struct bfc_who *who, const struct bfc_who *before);

void bfc_who_free(struct bfc_who *who);

#endif

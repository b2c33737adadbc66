/*
 * Asks a job which call stacks hold its memory, and reads the answer (layout/who.h). All that the
 * answer says is checked, since a job can write anything.
 *
 * Thread-safety: one thread at a time, as bfc_segment_read.
 */
#ifndef BFC_TOOLS_JOB_WHO_H
#define BFC_TOOLS_JOB_WHO_H

#include <stdbool.h>
#include <stddef.h>

#include "layout/who.h"
#include "segment/name.h"

/* A job's answer in memory, in which all indexes and offsets are in range. The pointers lead into
 * `copy`, the content of the answer's file; bfc_who_free frees it. */
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
    size_t size; /* bytes of `copy` */
};

/* Asks the job which call stacks hold its memory, and waits at most `timeout_ms`. With `blocks` the
 * answer also lists the blocks of the job's pools. False: `reason` (cut off at `size` bytes) says
 * why, in one line. */
bool bfc_who_ask(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                 bool blocks, struct bfc_who *who, char *reason, size_t size);

/* Reads an answer from a file into which bfcstat who -o has saved the bytes of an earlier answer's
 * `copy`. False: `reason` (cut off at `size` bytes) says why, in one line. */
bool bfc_who_read(const char *path, struct bfc_who *who, char *reason, size_t size);

/* Makes `who` from the content of an answer's file. `bytes` must be from malloc, and bfc_who_free
 * frees them. False: the content is not valid; then `bytes` are freed at once. */
bool bfc_who_adopt(struct bfc_who *who, void *bytes, size_t size);

/* Whether `who` and `before` are answers of the same process, and `who` is the later one. */
bool bfc_who_follows(const struct bfc_who *who, const struct bfc_who *before);

void bfc_who_free(struct bfc_who *who);

#endif

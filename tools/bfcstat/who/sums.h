/*
 * Adds up how much memory a job's sites (call stacks) hold: in all, by library, by tag and by site;
 * or how that has changed between two answers of the job.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_WHO_SUMS_H
#define BFC_TOOLS_WHO_SUMS_H

#include "tools/bfcstat/who/frame_names.h"

/* A sum of estimates of the memory that call stacks (sites) hold. Bytes are counted as the program
 * requested them, without padding. */
struct who_sum {
    /* what the sum is of: path of a library, a tag, or text of a place in the program */
    const char *name;
    /* the call stack, if this is the sum of one call stack; else NULL */
    const struct bfc_who_site *site;
    double bytes, blocks; /* bytes and blocks in use, or by how much they have changed */
    double variance; /* variance of `bytes`, in bytes squared: its root is the standard error */
    /* Bytes and blocks of all allocations so far, also of those that were freed; if the sum is a
     * change, only of the allocations between the two answers. */
    double allocated_bytes, allocated_blocks;
    /* From how many allocations with a recorded call stack the sum was estimated: those whose
     * blocks are in use; if the sum is a change, all such allocations between the two answers. */
    uint64_t samples;
};

struct who_sums {
    struct who_sum all;
    struct who_sum *libraries, *tags, *sites; /* sorted by bytes, largest first */
    /* Only if two answers are compared: the changes at each place in the program (who_place). */
    struct who_sum *places;
    size_t library_count, tag_count, site_count, place_count;
    double in_use;  /* bytes in use by the pools' own counters, or how they have changed */
    double seconds; /* time between the two answers; 0: there is only one */
};

/* Adds up what the call stacks (sites) in the job's answer names->who hold. If `before`, an earlier
 * answer of the same job, is not NULL, subtracts its values. False: no memory. who_sums_free must
 * be called in either case. */
bool who_sum_up(struct who_sums *sums, struct who_names *names, const struct bfc_who *before);
void who_sums_free(struct who_sums *sums);

/* Returns the standard error of sum->bytes. */
double who_error(const struct who_sum *sum);

#endif

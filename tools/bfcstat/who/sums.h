/*
 * Sums over a job's sites: all of it, by library, by tag, and by site; and what has changed between
 * two moments. One thread.
 */
#ifndef BFC_TOOLS_WHO_SUMS_H
#define BFC_TOOLS_WHO_SUMS_H

#include "tools/bfcstat/who/frame_names.h"

/* Estimates; bytes as asked for. */
struct who_sum {
    const char *name;                         /* of a sum by library: its path; by tag: the tag;
                                                 by place: its text */
    const struct bfc_who_site *site;          /* of a sum of one site */
    double bytes, blocks;                     /* in use */
    double variance;                          /* of `bytes` */
    double allocated_bytes, allocated_blocks; /* ever; of a change: meanwhile */
    uint64_t samples;                         /* live ones; of a change: those taken meanwhile */
};

struct who_sums {
    struct who_sum all;
    struct who_sum *libraries, *tags, *sites; /* most bytes first */
    struct who_sum *places;                   /* the same, of a change alone: see who_place */
    size_t library_count, tag_count, site_count, place_count;
    double in_use;  /* bytes, by the pools' own counters; of a change: how it changed */
    double seconds; /* between two moments; 0: one alone */
};

/* Of `names->who`, less what was there `before` (of the same job, earlier), unless that is NULL.
 * False: no memory. */
bool who_sum_up(struct who_sums *sums, struct who_names *names, const struct bfc_who *before);
void who_sums_free(struct who_sums *sums);

/* The standard error of a sum's bytes. */
double who_error(const struct who_sum *sum);

#endif

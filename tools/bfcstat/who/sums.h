/*
 * Adds up what a job's sites hold: in all, by library, by tag and by site; or what has changed
 * between two moments.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_WHO_SUMS_H
#define BFC_TOOLS_WHO_SUMS_H

#include "tools/bfcstat/who/frame_names.h"

/* A sum of estimates. Bytes are those that the program asked for. */
struct who_sum {
    const char *name;                /* path of the library, tag, or text of the place */
    const struct bfc_who_site *site; /* the site, if this is the sum of one site; else NULL */
    double bytes, blocks;            /* bytes and blocks in use, or their change */
    double variance;                 /* variance of `bytes` */
    double allocated_bytes, allocated_blocks; /* since the job began, or between two moments */
    uint64_t samples; /* samples of live blocks; of a change: all samples between the moments */
};

struct who_sums {
    struct who_sum all;
    struct who_sum *libraries, *tags, *sites; /* most bytes first */
    /* with two moments: the changes at each place in the program (who_place) */
    struct who_sum *places;
    size_t library_count, tag_count, site_count, place_count;
    double in_use;  /* bytes, by the pools' own counters, or their change */
    double seconds; /* time between the two moments; 0: there is only one */
};

/* Adds up the sites of `names->who`, less those of `before`, an earlier answer of the same job, if
 * that is not NULL. False: no memory. who_sums_free must be called in either case. */
bool who_sum_up(struct who_sums *sums, struct who_names *names, const struct bfc_who *before);
void who_sums_free(struct who_sums *sums);

/* Returns the standard error of a sum's bytes. */
double who_error(const struct who_sum *sum);

#endif

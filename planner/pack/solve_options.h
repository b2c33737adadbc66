/* The options, the progress and the result of a run of the solver. */
#ifndef BFC_PLAN_OPTIONS_H
#define BFC_PLAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct solve_progress {
    uint64_t bound; /* the lower bound in bytes, for all arenas together */
    uint64_t peak;  /* peak of the best plan so far in bytes; UINT64_MAX: there is none yet */
    double seconds; /* seconds since the start of the run */
    double share;   /* how far the run is, from 0 to 1, measured by its work or by its time limit */
};

struct solve_options {
    /* time limit in seconds; negative: no limit is given. The run then takes about 2.5 s; if a
     * capacity is given, it instead takes up to 60 s to reach that capacity */
    double seconds;
    /* the run ends when the plan's peak is at most this many times the lower bound; 0: the peak
     * alone does not end the run */
    double enough;
    /* the run ends when the peak, summed over all arenas, is at most this many bytes and at least a
     * second has passed; UINT64_MAX: no capacity is given */
    uint64_t capacity;
    unsigned threads;
    uint64_t seed;
    const bool *interrupted; /* atomic; the run ends soon after it is set */
    /* solve calls it about every 20 ms; may be NULL */
    void (*progress)(const struct solve_progress *progress);
};

struct solve_result {
    uint64_t bound;
    /* the peak of the plan, summed over all arenas; UINT64_MAX: no plan below 2^64 bytes was
     * found */
    uint64_t peak;
    uint64_t *peaks; /* by arena: its peak; the caller frees the array */
    bool optimal;    /* whether it is proved that no plan has a lower peak */
};

#endif

/* The options, the progress and the result of a run of the solver. */
#ifndef BFC_PLAN_OPTIONS_H
#define BFC_PLAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct solve_progress {
    uint64_t bound; /* the lower bound in bytes, for all arenas together */
    uint64_t peak;  /* peak of the best plan so far; UINT64_MAX: there is none yet */
    double seconds; /* seconds since the start of the run */
    double share;   /* share of the work or of the time limit that is over, 0 to 1 */
};

struct solve_options {
    double seconds;    /* time limit; negative: 2.5 s, or up to 60 s to reach a capacity */
    double enough;     /* a peak of at most this many times the lower bound ends the run; 0: not
                        * used */
    uint64_t capacity; /* bytes that are enough, for all arenas together; UINT64_MAX: none given */
    unsigned threads;
    uint64_t seed;
    const bool *interrupted;                                 /* atomic */
    void (*progress)(const struct solve_progress *progress); /* called every 20 ms; may be NULL */
};

struct solve_result {
    uint64_t bound;
    uint64_t peak;   /* the peak of the plan; UINT64_MAX: no plan has a peak below 2^64 */
    uint64_t *peaks; /* by arena; the caller frees it */
    bool optimal;    /* no plan has a lower peak */
};

#endif

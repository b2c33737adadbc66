/* What several unit tests of the planner need: random lifetimes, and a plain quadratic check. */
#ifndef BFC_TESTS_PLAN_HELPERS_H
#define BFC_TESTS_PLAN_HELPERS_H

#include <stdlib.h>
#include <string.h>

#include "planner/common/number.h"
#include "planner/common/random.h"
#include "tools/plan/io/csv.h"

/* Parses CSV text; false with the error set. */
static inline bool parse_text(struct lifetimes *lifetimes, const char *text,
                              struct plan_error *error) {
    struct file_text copy = {strdup(text), strlen(text)};
    return csv_parse(lifetimes, &copy, "test.csv", error);
}

/* Random rows over times [0, span), sizes below `most`; streams and aliases as asked for. */
static inline struct lifetimes random_lifetimes(uint32_t count, uint64_t span, uint64_t most,
                                                uint32_t streams, bool aliases, uint64_t *random) {
    struct lifetimes lifetimes = {.path = "random", .count = count};
    lifetimes.visible = lifetimes.prefix = count;
    lifetimes.rows = calloc(count + 1, sizeof *lifetimes.rows);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t birth = random_next(random) % span;
        struct lifetime *row = &lifetimes.rows[i];
        *row = (struct lifetime){.birth = PLAN_TICK_OF_ZERO + birth,
                                 .death = PLAN_TICK_OF_ZERO + birth + 1 + random_next(random) % 9,
                                 .size = random_next(random) % most,
                                 .pin = NOT_PINNED,
                                 .alias = ROW_NONE,
                                 .group = ROW_NONE,
                                 .stream = streams > 1 ? (uint32_t)(random_next(random) % streams)
                                                       : ROW_NONE};
        if (aliases && i > 0 && random_next(random) % 4 == 0) {
            row->alias = (uint32_t)(random_next(random) % i);
            row->stream = lifetimes.rows[row->alias].stream;
        }
    }
    lifetimes.has_alias = aliases;
    lifetimes.has_stream = streams > 1;
    lifetimes_seal(&lifetimes);
    return lifetimes;
}

static inline uint32_t alias_root(const struct lifetimes *lifetimes, uint32_t row) {
    while (lifetimes->rows[row].alias != ROW_NONE)
        row = lifetimes->rows[row].alias;
    return row;
}

static inline bool together(const struct lifetimes *lifetimes, uint32_t a, uint32_t b,
                            uint64_t gap) {
    const struct lifetime *x = &lifetimes->rows[a];
    const struct lifetime *y = &lifetimes->rows[b];
    if (!lifetimes->has_stream || x->stream == y->stream)
        return x->birth < y->death && y->birth < x->death;
    return x->birth <= y->death + gap && y->birth <= x->death + gap;
}

/* Do any two rows that may not share memory overlap? Compares all pairs. */
static inline bool any_overlap(const struct lifetimes *lifetimes, const uint64_t *offsets,
                               uint64_t align, uint64_t gap) {
    for (uint32_t a = 0; a < lifetimes->count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            uint64_t as = 0, bs = 0;
            plan_round_up(lifetimes->rows[a].size, align, &as);
            plan_round_up(lifetimes->rows[b].size, align, &bs);
            if (as > 0 && bs > 0 && together(lifetimes, a, b, gap) &&
                alias_root(lifetimes, a) != alias_root(lifetimes, b) &&
                offsets[a] < offsets[b] + bs && offsets[b] < offsets[a] + as)
                return true;
        }
    }
    return false;
}

#endif

/* The valley greedy, the search, hole filling and the portfolio. */
#include <criterion/criterion.h>

#include "planner/pack/fill.h"
#include "planner/pack/ranks.h"
#include "planner/pack/search.h"
#include "planner/pack/solve.h"
#include "planner/pack/solve_alone.h"
#include "planner/pack/valley.h"
#include "tests/unit/plan/helpers.h"

static bool never;

/* Random boxes by birth, in `sections`. */
static void draw_boxes(struct box *boxes, uint32_t n, uint32_t sections, uint64_t *random) {
    struct keyed keyed[64];
    for (uint32_t i = 0; i < n; i++)
        keyed[i] = (struct keyed){random_next(random) % sections, i};
    cr_assert(sort_keyed(keyed, n));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t birth = (uint32_t)keyed[i].key;
        const uint32_t most = sections - birth < 5 ? sections - birth : 5;
        boxes[i] = (struct box){birth, birth + 1 + (uint32_t)(random_next(random) % most),
                                1 + random_next(random) % 6};
    }
}

static bool meets(const struct box *a, uint64_t x, const struct box *b, uint64_t y) {
    return a->birth < b->death && b->birth < a->death && x < y + b->size && y < x + a->size;
}

static uint64_t check_packing(const struct box *boxes, uint32_t n, const uint64_t *offsets) {
    uint64_t peak = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < i; j++)
            cr_assert_not(meets(&boxes[i], offsets[i], &boxes[j], offsets[j]));
        peak = offsets[i] + boxes[i].size > peak ? offsets[i] + boxes[i].size : peak;
    }
    return peak;
}

/* Can boxes [at, n) be added below the capacity? Tries every offset: small instances only. */
static bool brute_force(const struct box *boxes, uint32_t n, uint64_t capacity, uint32_t at,
                        uint64_t *offsets) {
    if (at == n)
        return true;
    for (uint64_t x = 0; x + boxes[at].size <= capacity; x++) {
        bool free_place = true;
        for (uint32_t i = 0; free_place && i < at; i++)
            free_place = !meets(&boxes[at], x, &boxes[i], offsets[i]);
        offsets[at] = x;
        if (free_place && brute_force(boxes, n, capacity, at + 1, offsets))
            return true;
    }
    return false;
}

Test(valley, packs_everything) {
    uint64_t random = 1, offsets[64];
    struct box boxes[64];
    uint32_t rank[64];
    struct valley *valley = valley_create(64, 30);
    for (int round = 0; round < 300; round++) {
        const uint32_t n = 1 + (uint32_t)(random_next(&random) % 64);
        draw_boxes(boxes, n, 30, &random);
        for (uint32_t i = 0; i < n; i++)
            rank[i] = (i * 7 + (uint32_t)round) % n;
        if (n % 7 == 0)
            continue; /* not a permutation */
        struct valley_result r =
            valley_pack(valley, boxes, n, 30, rank, UINT64_MAX, &never, offsets);
        cr_assert(r.done);
        cr_assert_eq(r.peak, check_packing(boxes, n, offsets));
        r = valley_pack(valley, boxes, n, 30, rank, r.peak - 1, NULL, offsets);
        cr_assert_not(r.done);
        cr_assert_lt(r.failed, n);
    }
    valley_destroy(valley);
}

/* For random small instances, the search agrees with trying every offset, at every capacity. */
Test(search, agrees_with_brute_force) {
    uint64_t random = 5, offsets[16], found[16];
    struct box boxes[16];
    uint32_t rank[16];
    struct search *search = search_create();
    for (int round = 0; round < 150; round++) {
        const uint32_t n = 2 + (uint32_t)(random_next(&random) % 8);
        draw_boxes(boxes, n, 8, &random);
        for (uint32_t i = 0; i < n; i++)
            rank[i] = round % 2 ? i : n - 1 - i;
        for (uint64_t capacity = 3; capacity < 15; capacity++) {
            const enum search_focus focus = capacity % SEARCH_FOCUSES;
            const uint32_t effort = (uint32_t)round % SEARCH_EFFORTS;
            const bool possible = brute_force(boxes, n, capacity, 0, offsets);
            const enum search_result result = search_run(search, boxes, n, 8, rank, focus, effort,
                                                         capacity, 1000000, &never, found);
            cr_assert_eq(result, possible ? SEARCH_FOUND : SEARCH_EXHAUSTED, "round %d", round);
            if (possible)
                cr_assert_leq(check_packing(boxes, n, found), capacity);
        }
    }
    search_destroy(search);
}

Test(search, stops_at_its_node_limit) {
    uint64_t random = 9, offsets[60];
    struct box boxes[60];
    uint32_t rank[60];
    struct search *search = search_create();
    bool stop = true;
    draw_boxes(boxes, 60, 40, &random);
    for (uint32_t i = 0; i < 60; i++)
        rank[i] = i;
    cr_assert_eq(search_run(search, boxes, 60, 40, rank, SEARCH_LOWEST, 1, 1000, 3, &stop, offsets),
                 SEARCH_STOPPED);
    search_destroy(search);
}

Test(fill, takes_aliases_and_streams) {
    uint64_t random = 11;
    for (int round = 0; round < 60; round++) {
        struct lifetimes l =
            random_lifetimes(40, 40, 50, 1 + (uint32_t)round % 3, round % 2, &random);
        struct problem problem;
        struct plan_error error;
        uint64_t items[40], offsets[40];
        uint32_t rank[40];
        const uint64_t gap = (uint64_t)round % 4;
        cr_assert(problem_build(&problem, &l, 8, gap, &error), "%s", error.text);
        const struct arena *arena = &problem.arenas[0];
        for (uint32_t i = 0; i < arena->count; i++)
            rank[i] = arena->count - 1 - i;
        struct fill *fill = fill_create(arena);
        const struct fill_result result = fill_pack(fill, rank, round % 2 == 0, UINT64_MAX, items);
        cr_assert(result.done);
        for (uint32_t i = 0; i < 40; i++)
            offsets[i] = items[problem.item[i]] + problem.place[i];
        cr_assert_not(any_overlap(&l, offsets, 8, gap));
        fill_destroy(fill);
        problem_free(&problem);
        lifetimes_free(&l);
    }
}

static struct solve_result solved(const struct problem *problem, uint64_t *offsets, uint64_t seed) {
    const struct solve_options options = {
        .seconds = 0.2, .capacity = UINT64_MAX, .threads = 3, .seed = seed, .interrupted = &never};
    struct solve_result result;
    struct plan_error error;
    cr_assert(solve(problem, &options, offsets, &result, &error), "%s", error.text);
    free(result.peaks);
    return result;
}

Test(solve, is_valid_under_all_kinds_of_rows) {
    uint64_t random = 2;
    for (int round = 0; round < 24; round++) {
        struct lifetimes l =
            random_lifetimes(80, 60, 100, 1 + (uint32_t)round % 2, round % 3 == 0, &random);
        struct problem problem;
        struct plan_error error;
        uint64_t offsets[80];
        cr_assert(problem_build(&problem, &l, 4, 1, &error));
        const struct solve_result result = solved(&problem, offsets, (uint64_t)round);
        cr_assert_not(any_overlap(&l, offsets, 4, 1));
        cr_assert_geq(result.peak, result.bound);
        problem_free(&problem);
        lifetimes_free(&l);
    }
}

Test(solve, alone_is_as_good) {
    uint64_t random = 5, offsets[200];
    const struct solve_options options = {
        .seconds = 0.1, .capacity = UINT64_MAX, .interrupted = &never};
    for (int round = 0; round < 8; round++) {
        struct lifetimes l = random_lifetimes(200, 100, 100, 1, round % 2 == 0, &random);
        struct problem problem;
        struct solve_result result;
        struct plan_error error;
        cr_assert(problem_build(&problem, &l, 4, 0, &error));
        cr_assert(solve_alone(&problem, &options, offsets, &result, &error), "%s", error.text);
        cr_assert_not(any_overlap(&l, offsets, 4, 0));
        cr_assert_geq(result.peak, result.bound);
        cr_assert_leq(result.peak, result.bound + result.bound / 4);
        free(result.peaks);
        problem_free(&problem);
        lifetimes_free(&l);
    }
}

Test(solve, interrupted_at_once_still_has_a_plan) {
    bool interrupted = true;
    uint64_t random = 2, offsets[100];
    struct lifetimes l = random_lifetimes(100, 60, 100, 1, false, &random);
    struct problem problem;
    struct plan_error error;
    struct solve_result result;
    const struct solve_options options = {
        .seconds = 60, .capacity = UINT64_MAX, .threads = 2, .interrupted = &interrupted};
    cr_assert(problem_build(&problem, &l, 1, 0, &error));
    cr_assert(solve(&problem, &options, offsets, &result, &error));
    cr_assert_not(any_overlap(&l, offsets, 1, 0));
    free(result.peaks);
    problem_free(&problem);
    lifetimes_free(&l);
}

/* The period of a stream that goes on, and its plan. */
#include <criterion/criterion.h>

#include "planner/image/image.h"
#include "planner/loop/loop.h"
#include "tests/unit/plan/helpers.h"

static const bool never;

/* A program as a stream of calls; slots hold what lives. */
enum { SLOTS = 64 };
struct stream {
    struct events events;
    uint32_t live[SLOTS];
    uint64_t random;
};

static struct stream begin(uint32_t most) {
    struct stream s = {.events = {.list = calloc(most, sizeof *s.events.list),
                                  .allocations = calloc(most, sizeof *s.events.allocations)},
                       .random = 1};
    return s;
}

static void get(struct stream *s, unsigned slot, uint64_t bytes) {
    s->live[slot] = s->events.allocations_count;
    events_add_allocation(&s->events, (struct allocation){.bytes = bytes});
}

static void put(struct stream *s, unsigned slot) {
    events_add_free(&s->events, s->live[slot]);
}

static struct period period_of(const struct stream *s) {
    struct period period;
    struct plan_error error;
    cr_assert(period_find_current(&period, &s->events, &error), "%s", error.text);
    return period;
}

/* Allocates `count` blocks of its own sizes, and frees them the other way round. */
static void step(struct stream *s, unsigned kind, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        get(s, i, 512 * (1 + (uint64_t)kind * 100 + i));
    for (unsigned i = count; i-- > 0;)
        put(s, i);
}

Test(current, needs_three_repetitions_after_any_prefix) {
    struct stream s = begin(4000);
    for (unsigned i = 0; i < 37; i++)
        get(&s, SLOTS - 1, 512 * (1000 + i));
    step(&s, 1, 12);
    step(&s, 1, 12);
    cr_assert_eq(period_of(&s).length, 0);
    step(&s, 1, 12);
    const struct period p = period_of(&s);
    cr_assert_eq(p.length, 12);
    cr_assert_eq(p.length_events, 24);
    cr_assert_eq(p.prefix, 37);
    cr_assert_not(p.jitter);
}

/* Wherever it is looked at, the repetitions begin where nothing lives. */
Test(current, begins_where_the_least_lives) {
    for (unsigned cut = 0; cut < 24; cut++) {
        struct stream s = begin(4000);
        get(&s, SLOTS - 1, 1 << 20);
        for (unsigned i = 0; i < 5; i++)
            step(&s, 1, 12);
        for (unsigned i = 0; i < cut; i++)
            i < 12 ? get(&s, i, 512 * (101 + (uint64_t)i)) : put(&s, 23 - i);
        const struct period p = period_of(&s);
        cr_assert_eq(p.length, 12);
        cr_assert_eq((p.prefix - 1) % 12, 0, "cut %u", cut);
        cr_assert_geq(p.repetitions, 2);
        events_free(&s.events);
    }
}

/* A step of eight equal parts and an end: first the part is the period, then the step. */
Test(current, of_nested_loops_is_the_outer_one_once_that_is_seen) {
    struct stream s = begin(40000);
    for (unsigned outer = 0; outer < 2; outer++) {
        for (unsigned inner = 0; inner < 8; inner++)
            step(&s, 1, 10);
        step(&s, 2, 30);
    }
    for (unsigned inner = 0; inner < 4; inner++)
        step(&s, 1, 10);
    cr_assert_eq(period_of(&s).length, 10);
    for (unsigned inner = 0; inner < 4; inner++)
        step(&s, 1, 10);
    step(&s, 2, 30);
    cr_assert_eq(period_of(&s).length, 110);
    step(&s, 1, 10);
    step(&s, 1, 10);
    step(&s, 1, 10);
    cr_assert_eq(period_of(&s).length, 110, "not the part, which repeats too");
}

Test(current, follows_a_change_of_phase) {
    struct stream s = begin(40000);
    for (unsigned i = 0; i < 20; i++)
        step(&s, 1, 20);
    cr_assert_eq(period_of(&s).length, 20);
    step(&s, 2, 9);
    cr_assert_eq(period_of(&s).length, 0, "the old one is over");
    for (unsigned i = 0; i < 3; i++)
        step(&s, 2, 9);
    cr_assert_eq(period_of(&s).length, 9);
    for (unsigned i = 0; i < 3; i++)
        step(&s, 1, 20);
    cr_assert_eq(period_of(&s).length, 20);
}

Test(current, of_alternating_loops_may_hold_both) {
    struct stream s = begin(40000);
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < 5; j++)
            step(&s, 1, 10);
        for (unsigned j = 0; j < 2; j++)
            step(&s, 2, 15);
    }
    cr_assert_eq(period_of(&s).length, 80);
}

/* One size in a hundred, in twenty, in five is another one: the usual sizes are planned. */
Test(current, takes_the_usual_sizes_where_some_change) {
    for (unsigned every = 100; every >= 5; every /= 4) {
        struct stream s = begin(40000);
        for (unsigned r = 0; r < 9; r++) {
            for (unsigned i = 0; i < 40; i++) {
                const bool changed = random_next(&s.random) % every == 0;
                get(&s, i, 4096 * (changed ? 1 + random_next(&s.random) % 400 : 100 + (uint64_t)i));
            }
            for (unsigned i = 0; i < 40; i++)
                put(&s, i);
        }
        const struct period p = period_of(&s);
        unsigned right = 0;
        cr_assert_eq(p.length, 40);
        for (unsigned i = 0; i < 40; i++)
            right += period_slot_bytes(&p, &s.events, i) == 4096 * (100 + (uint64_t)i);
        cr_assert_geq(right, 38, "one in %u: %u", every, right);
        events_free(&s.events);
    }
}

/* Five repetitions, each of a little larger sizes. */
static void grow_a_little(struct stream *s) {
    for (unsigned r = 0; r < 5; r++) {
        for (unsigned i = 0; i < 12; i++)
            get(s, i, ((uint64_t)10000 + i + r) * 512);
        for (unsigned i = 0; i < 12; i++)
            put(s, i);
    }
}

/* Sizes that grow a little from one repetition to the next: the largest. */
Test(current, takes_the_largest_sizes_where_all_change_little) {
    struct stream s = begin(4000);
    grow_a_little(&s);
    const struct period p = period_of(&s);
    cr_assert(p.jitter && !p.usual);
    cr_assert_eq(period_slot_bytes(&p, &s.events, 3), (uint64_t)10007 * 512);
}

/* Each word of `order` letters once (by Lyndon words; Fredricksen and Maiorana 1978). */
static void add_de_bruijn(struct stream *s, unsigned order, unsigned letters, unsigned *word,
                          unsigned t, unsigned p) {
    if (t > order) {
        for (unsigned i = 1; order % p == 0 && i <= p; i++) {
            get(s, 0, 512 * (1 + (uint64_t)word[i]));
            put(s, 0);
        }
        return;
    }
    word[t] = word[t - p];
    add_de_bruijn(s, order, letters, word, t + 1, p);
    for (unsigned j = word[t - p] + 1; j < letters; j++) {
        word[t] = j;
        add_de_bruijn(s, order, letters, word, t + 1, t);
    }
}

Test(current, finds_none_in_a_sequence_of_all_words) {
    unsigned word[16] = {0};
    struct stream s = begin(40000);
    add_de_bruijn(&s, 8, 3, word, 1, 1);
    cr_assert_geq(s.events.count, 2 * 6561);
    struct plan_error error;
    struct period period;
    cr_assert(period_find_current(&period, &s.events, &error));
    /* Without sizes the calls are all alike; but such sizes are no loop's. */
    cr_assert(period.length <= 1, "%u", period.length);
}

/* The Fibonacci word has cubes everywhere, none of which goes on. */
Test(current, bears_fibonacci_words) {
    struct stream s = begin(200000);
    char *word = calloc(60000, 1), *next = calloc(60000, 1);
    strcpy(word, "a");
    strcpy(next, "ab");
    while (strlen(next) < 20000) {
        char *sum = calloc(60000, 1);
        strcpy(sum, next);
        strcat(sum, word);
        free(word);
        word = next;
        next = sum;
    }
    for (const char *c = next; *c; c++) {
        get(&s, 0, *c == 'a' ? 512 : 1 << 20);
        put(&s, 0);
    }
    const struct period p = period_of(&s);
    cr_assert(p.length == 0 || p.jitter || (uint64_t)p.length * 3 <= s.events.allocations_count);
}

Test(current, bears_a_million_calls) {
    enum { MANY = 1000000, LOOP = 40000 };
    struct stream s = begin(MANY + 4 * LOOP);
    while (s.events.count < MANY) {
        get(&s, 0, 512 * (1 + random_next(&s.random) % 100000));
        if (random_next(&s.random) % 2)
            put(&s, 0);
    }
    cr_assert_eq(period_of(&s).length, 0);
    for (unsigned r = 0; r < 3; r++)
        for (unsigned i = 0; i < LOOP / 2; i++) {
            get(&s, 0, 512 * (1 + (uint64_t)i));
            put(&s, 0);
        }
    cr_assert_eq(period_of(&s).length, LOOP / 2);
    events_free(&s.events);
}

/* ---- plans ---- */

Test(loop, is_planned_without_what_came_before) {
    struct stream s = begin(4000);
    struct loop_result result;
    struct plan_error error;
    struct plan_file plan;
    get(&s, SLOTS - 1, 1 << 20);
    for (unsigned i = 0; i < 4; i++)
        step(&s, 3, 12);
    const struct period p = period_of(&s);
    const struct loop_limits limits = {.seconds = 1, .interrupted = &never};
    cr_assert(loop_plan(&result, &s.events, &p, &limits, &error), "%s", error.text);
    cr_assert_eq(result.peak, result.bound);
    cr_assert(plan_parse(&plan, &result.plan, "plan", &error), "%s", error.text);
    cr_assert_eq(plan.header.prefix, 0);
    cr_assert_eq(plan.header.period, 12);
    cr_assert_eq(plan.header.events, 12);
    cr_assert_eq(plan.events[0].size, bfc_plan_round(512 * 301));
    plan_free(&plan);
}

/* What one repetition hands to the next has its place in both. */
Test(loop, may_be_a_ring) {
    struct stream s = begin(40000);
    struct loop_result result;
    struct plan_error error;
    for (unsigned r = 0; r < 12; r++) {
        for (unsigned i = 0; i < 10; i++) {
            if (r > 0)
                put(&s, i);
            get(&s, i, 65536 * (1 + (uint64_t)i));
        }
    }
    const struct period p = period_of(&s);
    const struct loop_limits limits = {.seconds = 1, .interrupted = &never};
    cr_assert_eq(p.length, 10);
    cr_assert(loop_plan(&result, &s.events, &p, &limits, &error), "%s", error.text);
    cr_assert_leq(result.peak, result.bound + result.bound / 4);
    file_free(&result.plan);
}

Test(loop, interrupted_has_no_plan) {
    static const bool always = true;
    struct stream s = begin(4000);
    struct loop_result result;
    struct plan_error error;
    for (unsigned i = 0; i < 4; i++)
        step(&s, 3, 12);
    const struct period p = period_of(&s);
    const struct loop_limits limits = {.seconds = 1, .interrupted = &always};
    cr_assert_not(loop_plan(&result, &s.events, &p, &limits, &error));
}

Test(loop, that_varies_has_no_plan_where_sizes_are_to_be_the_same) {
    struct stream s = begin(4000);
    struct loop_result result;
    struct plan_error error;
    grow_a_little(&s);
    const struct period p = period_of(&s);
    const struct loop_limits any = {.seconds = 1, .interrupted = &never};
    const struct loop_limits same = {.seconds = 1, .same_sizes = true, .interrupted = &never};
    cr_assert_not(loop_plan(&result, &s.events, &p, &same, &error));
    cr_assert_str_eq(error.text, "its sizes vary");
    cr_assert(loop_plan(&result, &s.events, &p, &any, &error), "%s", error.text);
    file_free(&result.plan);
}

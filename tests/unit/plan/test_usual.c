/* Loops whose repetitions differ: what most of them have is found. */
#include <criterion/criterion.h>

#include "planner/period/period.h"
#include "planner/period/usual.h"
#include "tests/unit/plan/helpers.h"

enum {
    MOST_SLOTS = 512,
    MOST_EVENTS_HERE = 1 << 17,
    NEAR = 8, /* slots: who follows a plan finds his place from twice as far */
};

static struct events stream;
static uint64_t chance;
static uint32_t serial, holds[MOST_SLOTS];

static void begin(uint64_t seed) {
    chance = seed;
    serial = 0;
    memset(holds, 0, sizeof holds);
    stream = (struct events){.list = calloc(MOST_EVENTS_HERE, sizeof *stream.list),
                             .allocations = calloc(MOST_EVENTS_HERE, sizeof *stream.allocations)};
}

static bool happens(unsigned percent) {
    return random_next(&chance) % 100 < percent;
}

/* Each slot has a size of its own, and is freed before the one that is age_of(slot) further. */
static uint64_t size_of(uint32_t slot) {
    return 512 * (1 + (uint64_t)slot * 3);
}

static uint32_t age_of(uint32_t slot, uint32_t slots) {
    return 1 + slot * 7 % (slots / 2);
}

static uint64_t other_size(void) {
    return 512 * (2 + random_next(&chance) % 1000 * 3);
}

static uint32_t get(uint64_t bytes) {
    events_add_allocation(&stream, (struct allocation){.bytes = bytes, .serial = ++serial});
    return stream.allocations_count;
}

static void put_due(uint32_t slot, uint32_t slots) {
    for (uint32_t i = 0; i < slots; i++)
        if (holds[i] && (i + age_of(i, slots)) % slots == slot) {
            events_add_free(&stream, holds[i] - 1);
            holds[i] = 0;
        }
}

/* Some of the slots from 0 to `to`: a third of the changes each are other sizes, none, and more. */
static void play(uint32_t to, uint32_t slots, unsigned percent) {
    for (uint32_t slot = 0; slot < to; slot++) {
        const unsigned kind = happens(percent) ? (unsigned)(random_next(&chance) % 3) : 3;
        put_due(slot, slots);
        if (kind == 2)
            events_add_free(&stream, get(other_size()) - 1);
        holds[slot] = kind == 1 ? 0 : get(kind == 0 ? other_size() : size_of(slot));
    }
}

static struct events usual_of_stream(void) {
    struct events usual;
    struct plan_error error;
    cr_assert(usual_find(&usual, &stream, &error));
    events_free(&stream);
    return usual;
}

static struct period period_of(const struct events *events) {
    struct period period;
    struct plan_error error;
    cr_assert(period_find_current(&period, events, &error));
    return period;
}

/* How many of the period's allocations are those of the loop, freed when they are there, but
 * for one or two that are missing before that. */
static uint32_t count_right(const struct events *usual, const struct period *period,
                            uint32_t slots) {
    uint32_t right = 0;
    for (uint32_t i = period->prefix; i < period->prefix + period->length; i++) {
        const struct allocation *a = &usual->allocations[i];
        const uint32_t slot = (uint32_t)((a->bytes / 512 - 1) / 3);
        uint32_t age = 0;
        for (uint32_t e = a->birth; a->death != NEVER && e < a->death; e++)
            age += !usual->list[e].is_free;
        right += a->bytes == size_of(slot) && slot < slots && age + 2 >= age_of(slot, slots) &&
                 age <= age_of(slot, slots) + 2;
    }
    return right;
}

static void expect_found(uint32_t slots, unsigned percent, uint64_t seed, double share) {
    const uint32_t stands = slots / 3;
    begin(seed);
    get(1 << 20);
    for (int repetition = 0; repetition < 8; repetition++)
        play(slots, slots, percent);
    play(stands, slots, percent);
    struct events usual = usual_of_stream();
    const struct period period = period_of(&usual);
    const uint32_t right = period.length ? count_right(&usual, &period, slots) : 0;
    cr_assert(right >= share * slots && period.length <= slots * (2 - share),
              "%u slots, %u %%, seed %u: %u of %u are right", slots, percent, (unsigned)seed, right,
              period.length);
    const uint32_t last =
        (uint32_t)(usual.allocations[usual.allocations_count - 1].bytes / 512 / 3);
    cr_assert(last + NEAR >= stands - 1 && last <= stands - 1 + NEAR,
              "%u slots, %u %%, seed %u: it ends at %u, not %u", slots, percent, (unsigned)seed,
              last, stands - 1);
    events_free(&usual);
}

Test(usual, is_found_whatever_changes) {
    for (uint64_t seed = 1; seed <= 5; seed++)
        for (uint32_t slots = 40; slots <= 320; slots *= 2) {
            expect_found(slots, 0, seed, 1);
            expect_found(slots, 5, seed, 0.95);
            expect_found(slots, 20, seed, 0.8);
        }
}

/* As with batches that are fetched ahead: freed when the next but one comes. */
Test(usual, is_found_where_some_live_for_longer_than_a_repetition) {
    const uint32_t slots = 100;
    uint32_t ahead[2] = {0};
    begin(1);
    for (int repetition = 0; repetition < 9; repetition++) {
        uint32_t *batch = &ahead[repetition % 2];
        if (*batch)
            events_add_free(&stream, *batch - 1);
        *batch = get(1 << 20);
        play(slots, slots, 5);
    }
    struct events usual = usual_of_stream();
    const struct period period = period_of(&usual);
    const uint32_t right = period.length ? count_right(&usual, &period, slots) : 0;
    cr_assert(right >= 0.95 * slots, "%u of %u are right", right, slots);
    events_free(&usual);
}

Test(usual, is_not_invented) {
    begin(1);
    for (int i = 0; i < 3000; i++)
        get(512 * (1 + random_next(&chance) % 16));
    struct events usual = usual_of_stream();
    cr_assert_eq(usual.count, 0);
    events_free(&usual);
}

Test(usual, needs_four_repetitions) {
    begin(1);
    for (int repetition = 0; repetition < 3; repetition++)
        play(100, 100, 5);
    struct events usual = usual_of_stream();
    cr_assert_eq(usual.count, 0);
    events_free(&usual);
}

Test(usual, bears_short_streams) {
    for (uint32_t count = 0; count < 40; count++) {
        begin(count);
        play(count, 40, 20);
        struct events usual = usual_of_stream();
        cr_assert_eq(usual.count, 0);
        events_free(&usual);
    }
}

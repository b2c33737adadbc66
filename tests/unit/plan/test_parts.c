/* What repeats within a loop is not taken for it, however little of the loop has been seen. */
#include <criterion/criterion.h>

#include "planner/period/period.h"
#include "planner/period/usual.h"
#include "tests/unit/plan/helpers.h"

enum { BLOCKS = 48, MOST = 1 << 14, LAYERS = 12, IN_LAYER = 8, STEPS_A_LOOP = 8 };

static struct events stream;
static uint32_t held[LAYERS * IN_LAYER + BLOCKS];
static uint64_t chance;

static void begin(void) {
    chance = 1;
    stream = (struct events){.list = calloc(MOST, sizeof *stream.list),
                             .allocations = calloc(MOST, sizeof *stream.allocations)};
}

static void get(unsigned slot, uint64_t bytes) {
    held[slot] = stream.allocations_count;
    events_add_allocation(&stream, (struct allocation){.bytes = bytes, .serial = held[slot] + 1});
}

static void put(unsigned slot) {
    events_add_free(&stream, held[slot]);
}

/* The allocations that a search finds repeating; 0: none. */
static uint32_t length_of(const struct events *events) {
    struct period period;
    struct plan_error error;
    cr_assert(period_find_current(&period, events, &error));
    return period.length;
}

static uint32_t usual_length(void) {
    struct events usual;
    struct plan_error error;
    cr_assert(usual_find(&usual, &stream, &error));
    const uint32_t length = usual.count ? length_of(&usual) : 0;
    events_free(&usual);
    return length;
}

/* As long as the loop or as several of them, but for some allocations that come as often as not. */
static bool is_right(uint32_t found, uint32_t loop) {
    const uint32_t times = (found + loop / 2) / loop, off = loop * times / 7;
    return found == 0 || (times > 0 && found >= loop * times - off && found <= loop * times + off);
}

/* Sizes that recur after 11, 15, 19 or 27 of the 48, and then begin anew; in each repetition some
 * are others. */
static uint64_t size_of(unsigned loop, unsigned i, unsigned percent) {
    if (random_next(&chance) % 100 < percent)
        return 512 * (1 + random_next(&chance) % 1000);
    return (uint64_t)65536 * (1 + (i * 37 + loop * 11) % (7 + 4 * loop)) + 4096 * loop;
}

/* Every third block is freed at once after the one behind it, the others at the end. */
static void play(unsigned loop, unsigned from, unsigned to, unsigned percent) {
    for (unsigned i = from; i < to; i++) {
        get(i, size_of(loop, i, percent));
        if (i % 3 == 1 && i > from)
            put(i - 1);
    }
}

static void play_end(unsigned from) {
    for (unsigned i = BLOCKS; i-- > from;)
        if (i % 3 != 0 || i + 1 == BLOCKS)
            put(i);
}

/* From anywhere in the loop on; it is looked at now and then. */
static void look_all_along(unsigned loop, unsigned from, unsigned percent) {
    const unsigned step = BLOCKS / STEPS_A_LOOP;
    for (unsigned repetition = 0; repetition < 6; repetition++) {
        const unsigned first = repetition ? 0 : from;
        for (unsigned at = first; at < BLOCKS; at += step) {
            play(loop, at, at + step, percent);
            const uint32_t exact = length_of(&stream), usual = usual_length();
            cr_assert(is_right(exact, BLOCKS) && is_right(usual, BLOCKS),
                      "loop %u from %u, %u %%, repetition %u, %u: %u, %u", loop, from, percent,
                      repetition, at + step, exact, usual);
        }
        play_end(first);
    }
    cr_assert(percent || length_of(&stream) == BLOCKS);
}

Test(parts, of_a_loop_whose_sizes_recur) {
    for (unsigned loop = 1; loop <= 5; loop++)
        for (unsigned from = 0; from < BLOCKS; from += BLOCKS / STEPS_A_LOOP * 3)
            for (unsigned percent = 0; percent <= 1; percent++) {
                begin();
                look_all_along(loop, from, percent);
                events_free(&stream);
            }
}

/* Another loop of as many allocations came before. */
Test(parts, of_a_loop_that_has_just_begun) {
    for (unsigned before = 1; before <= 3; before++)
        for (unsigned loop = 1; loop <= 5; loop++) {
            begin();
            for (unsigned times = 0; times < before; times++) {
                play(loop % 5 + 1, 0, BLOCKS, 0);
                play_end(0);
            }
            look_all_along(loop, 0, 0);
            events_free(&stream);
        }
}

static void look_at_layers(unsigned length) {
    const uint32_t exact = length_of(&stream), usual = usual_length();
    cr_assert(is_right(exact, length) && is_right(usual, length), "%u allocations: %u, %u",
              stream.allocations_count, exact, usual);
}

/* Layers keep what the way back needs, and frees. */
static void train(unsigned length) {
    for (unsigned layer = 0; layer < LAYERS; layer++) {
        for (unsigned i = 0; i < IN_LAYER; i++)
            get(layer * IN_LAYER + i, 4096 * (1 + i * 5 % 7));
        for (unsigned i = 1; i < IN_LAYER; i += 2)
            put(layer * IN_LAYER + i);
        look_at_layers(length);
    }
    for (unsigned layer = LAYERS; layer-- > 0;) {
        for (unsigned i = 0; i < IN_LAYER; i += 2) {
            get(LAYERS * IN_LAYER, 2048 * (11 + i));
            put(layer * IN_LAYER + i);
            put(LAYERS * IN_LAYER);
        }
        look_at_layers(length);
    }
}

Test(parts, the_layers_of_a_model) {
    const unsigned length = LAYERS * IN_LAYER * 3 / 2;
    begin();
    for (int step = 0; step < 4; step++)
        train(length);
    cr_assert_eq(length_of(&stream), length);
    events_free(&stream);
}

/* A place in a plan, gaps in it, and whether it overlaps itself: interpose/features/plan without
 * CUDA. */
#include <criterion/criterion.h>

#include "interpose/features/plan/gaps.h"

enum { MOST = 64, KIB = 1024 };

static struct bfc_plan_header header;
static struct bfc_plan_arena arena;
static struct bfc_plan_event events[MOST];
static struct bfc_slot slots[MOST];
static const struct bfc_slot *placed[MOST];
static struct bfc_places places;
static const struct bfc_plan plan = {.header = &header, .arenas = &arena, .events = events};
static struct bfc_course course;
static struct plan_error error;

/* One period of allocations of 1 KiB, 2 KIB, ..., each at its own place and freed when the next but
 * one comes. */
static void make_plan(unsigned count, unsigned prefix) {
    header = (struct bfc_plan_header){.arenas = 1,
                                      .events = count,
                                      .prefix = prefix,
                                      .period = count - prefix,
                                      .period_birth = 2 * prefix,
                                      .period_ticks = 2 * (count - prefix)};
    course = (struct bfc_course){
        .slots = slots, .count = count, .prefix = prefix, .periodic = true, .plan = &plan};
    uint64_t offset = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t size = (i + 1) * KIB, birth = 2 * (uint64_t)i;
        events[i] = (struct bfc_plan_event){
            .offset = offset, .size = size, .birth = birth, .death = birth + 4};
        slots[i] = (struct bfc_slot){.size = size, .offset = offset, .event = i};
        placed[i] = &slots[i];
        offset += size;
    }
    arena = (struct bfc_plan_arena){.peak = offset};
    places = (struct bfc_places){.all = placed, .count = count, .bytes = offset};
    bfc_cursor_note_sizes(&course);
    bfc_cursor_begin(&course, 0);
}

static struct bfc_match come(uint64_t kib) {
    struct bfc_match match = bfc_cursor_look(&course, kib * KIB);
    bfc_cursor_pass(&course, &match, kib * KIB);
    return match;
}

static void expect(uint64_t kib, uint32_t at) {
    struct bfc_match match = come(kib);
    cr_assert(match.known && match.same && match.at == at, "%u KiB: slot %u, not %u", (unsigned)kib,
              match.at, at);
}

Test(cursor, goes_round_the_period_after_the_prefix) {
    make_plan(10, 3);
    for (unsigned i = 0; i < 10; i++)
        expect(i + 1, i);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 3; i < 10; i++)
            expect(i + 1, i);
}

Test(cursor, another_size_takes_the_place_of_the_planned_one) {
    make_plan(10, 0);
    expect(1, 0);
    struct bfc_match match = come(100);
    cr_assert(match.known && !match.same && match.at == 1);
    expect(3, 2);
}

Test(cursor, a_place_that_it_moved_to_by_chance_is_left) {
    make_plan(20, 0);
    slots[9].size = 3 * KIB; /* nearer to where it moved */
    expect(1, 0);
    expect(8, 7); /* instead of the next one */
    expect(3, 2);
    for (unsigned i = 3; i < 9; i++)
        expect(i + 1, i);
}

Test(cursor, a_place_that_it_moved_to_by_chance_for_one_more_is_left) {
    make_plan(20, 0);
    slots[9].size = 2 * KIB;
    expect(1, 0);
    expect(8, 7); /* before the next one */
    expect(2, 1);
    expect(3, 2);
}

Test(cursor, a_place_that_it_moved_to_is_kept_once_the_next_have_come) {
    make_plan(30, 0);
    slots[17].size = 3 * KIB;
    expect(1, 0);
    for (unsigned i = 7; i < 16; i++)
        expect(i + 1, i);
    expect(3, 17);
}

Test(cursor, one_more_is_noticed_by_the_next) {
    make_plan(10, 0);
    expect(1, 0);
    come(100);
    expect(2, 1);
    expect(3, 2);
}

Test(cursor, one_less_is_passed_over) {
    make_plan(10, 0);
    expect(1, 0);
    cr_assert(come(3).jumped);
    expect(4, 3);
    for (unsigned i = 4; i < 9; i++)
        expect(i + 1, i);
    expect(1, 0); /* the last one did not come */
    expect(2, 1);
}

Test(cursor, what_came_already_does_not_come_again) {
    make_plan(10, 0);
    expect(1, 0);
    expect(2, 1);
    struct bfc_match match = come(1);
    cr_assert(!match.same && match.at == 2);
}

Test(cursor, lost_it_comes_back_with_the_period) {
    make_plan(10, 0);
    for (unsigned i = 0; i < 100; i++)
        come(100);
    cr_assert(course.lost);
    cr_assert_not(come(5).known);
    for (unsigned i = 1; i <= 4; i++)
        cr_assert_not(come(i).known);
    cr_assert_not(course.lost);
    expect(5, 4);
}

Test(cursor, lost_an_anchor_leads_back) {
    make_plan(10, 0);
    struct bfc_plan_anchor anchor = {.token = bfc_plan_token(0, 7 * KIB, 0), .event = 6};
    const struct bfc_plan with = {
        .header = &header, .arenas = &arena, .events = events, .anchors = &anchor};
    header.anchors = 1;
    course.plan = &with;
    for (unsigned i = 0; i < 100; i++)
        come(100);
    cr_assert(course.lost);
    expect(7, 6);
    expect(8, 7);
}

Test(cursor, without_a_period_it_ends) {
    make_plan(4, 4);
    course.periodic = false;
    for (unsigned i = 0; i < 4; i++)
        expect(i + 1, i);
    cr_assert_not(come(1).known);
    cr_assert_not(come(1).known);
}

Test(cursor, with_sizes_that_vary_smaller_ones_are_the_same) {
    make_plan(10, 0);
    course.jitter = true;
    expect(1, 0);
    cr_assert(bfc_cursor_look(&course, 3 * KIB / 2).same);
    cr_assert_not(bfc_cursor_look(&course, KIB / 2).same);
}

/* No size lets it reach outside its tables. */
Test(cursor, survives_any_sequence) {
    uint64_t seed = 1;
    for (unsigned i = 0; i < 200000; i++) {
        if (i % 1000 == 0)
            make_plan(1 + (unsigned)(seed % 40), (unsigned)(seed % 40) * (i % 2000 == 0) / 2);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        struct bfc_match match = come((seed >> 33) % 45);
        cr_assert(!match.known || match.at < course.count);
        cr_assert(course.at <= course.count);
    }
}

Test(gaps, are_where_the_plan_has_nothing_for_so_long) {
    make_plan(10, 0);
    struct bfc_gaps gaps;
    bfc_gaps_find(&gaps, &places, &plan, &slots[4]);
    cr_assert_geq(gaps.count, 1);
    for (unsigned i = 0; i < gaps.count; i++) {
        cr_assert(!i || gaps.list[i].size >= gaps.list[i - 1].size);
        for (unsigned other = 3; other < 6; other++) /* alive with it */
            cr_assert(other == 4 || gaps.list[i].start + gaps.list[i].size <= slots[other].offset ||
                      gaps.list[i].start >= slots[other].offset + slots[other].size);
    }
}

/* Of every second of many blocks, which are all alive at once, but for the last. */
Test(gaps, the_largest_are_kept) {
    make_plan(40, 0);
    for (unsigned i = 0; i < 40; i++)
        events[i].death = i % 2 ? 80 : events[i].birth + 1;
    struct bfc_gaps gaps;
    bfc_gaps_find(&gaps, &places, &plan, &slots[39]);
    cr_assert_eq(gaps.count, BFC_GAPS);
    cr_assert_eq(gaps.list[BFC_GAPS - 1].size, slots[38].size + slots[39].size);
    for (unsigned i = 0; i + 1 < BFC_GAPS; i++)
        cr_assert_eq(gaps.list[i].start, slots[38 - 2 * (BFC_GAPS - 1 - i)].offset);
}

Test(overlap, apart_in_time_or_place_is_none) {
    make_plan(10, 0);
    cr_assert(bfc_plan_is_apart(&plan, &error), "%s", error.text);
    events[5].offset = events[0].offset; /* long dead */
    cr_assert(bfc_plan_is_apart(&plan, &error), "%s", error.text);
}

Test(overlap, is_found_wherever_it_is) {
    for (unsigned i = 0; i + 1 < 10; i++) {
        make_plan(10, 0);
        events[i + 1].offset = events[i].offset;
        cr_assert_not(bfc_plan_is_apart(&plan, &error));
    }
}

Test(overlap, is_found_round_the_end_of_the_period) {
    make_plan(10, 0);
    events[9].offset = events[0].offset; /* lives two ticks into the next period */
    cr_assert_not(bfc_plan_is_apart(&plan, &error));
}

/* Against a comparison of all pairs. */
Test(overlap, agrees_with_a_comparison_of_all_pairs) {
    uint64_t seed = 5;
    for (unsigned run = 0; run < 3000; run++) {
        bool overlaps = false;
        make_plan(12, 12);
        for (unsigned i = 0; i < 12; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            events[i].offset = (seed >> 33) % 40 * KIB;
            events[i].size = (1 + (seed >> 40) % 4) * KIB;
            events[i].birth = (seed >> 45) % 30;
            events[i].death = events[i].birth + 1 + (seed >> 51) % 6;
        }
        for (unsigned i = 0; i < 12; i++)
            for (unsigned j = 0; j < i; j++)
                overlaps |= events[i].birth < events[j].death &&
                            events[j].birth < events[i].death &&
                            events[i].offset < events[j].offset + events[j].size &&
                            events[j].offset < events[i].offset + events[i].size;
        cr_assert_neq(bfc_plan_is_apart(&plan, &error), overlaps);
    }
}

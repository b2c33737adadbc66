/* Calls of several threads, whose events' numbers are drawn in batches, come out of the reader in
 * an order in which they can have come. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/bfcstat/event_order.h"

enum { THREADS = 6, SLOTS = 24, STEP = 1 << 20 };

/* Threads that exchange what is in SLOTS, at random, and the ring that their events are in. */
struct world {
    struct bfc_job job;
    uint64_t number[THREADS]; /* of the thread's next event */
    uint64_t held[SLOTS], freed[2 * SLOTS];
    unsigned freed_count;
    uint32_t random;
};

static uint32_t next(struct world *world, uint32_t below) {
    world->random = world->random * 1664525u + 1013904223u;
    return (world->random >> 8) % below;
}

static void note(struct world *world, unsigned thread, enum bfc_event_kind kind, uint64_t address) {
    uint64_t *number = &world->number[thread];
    if (*number % BFC_EVENT_BATCH == 0) {
        *number = world->job.header.next_event;
        world->job.header.next_event += BFC_EVENT_BATCH;
    }
    world->job.events[*number % BFC_EVENTS] = (struct bfc_event){
        .stamp = *number + 1, .what = bfc_event_what(kind, 0, 0), .address = address, .bytes = 1};
    ++*number;
}

static void begin(struct world *world, uint32_t seed) {
    *world = (struct world){.random = seed};
    world->job.event_count = BFC_EVENTS;
    for (unsigned i = 0; i < 2 * SLOTS; i++)
        world->freed[world->freed_count++] = STEP * (i + 1ull);
}

/* Each frees what is in a slot, and allocates for it, mostly what was freed last. */
static void call(struct world *world, unsigned threads, unsigned times) {
    for (unsigned i = 0; i < times; i++) {
        unsigned slot = next(world, SLOTS), thread = next(world, threads);
        unsigned last = world->freed_count - 1 - (next(world, 4) == 0);
        if (world->held[slot]) {
            note(world, thread, BFC_EVENT_FREE, world->held[slot]);
            world->freed[world->freed_count++] = world->held[slot];
        }
        world->held[slot] = world->freed[last];
        world->freed[last] = world->freed[--world->freed_count];
        note(world, next(world, threads), BFC_EVENT_ALLOCATE, world->held[slot]);
    }
}

static struct bfc_who answer(const struct world *world) {
    static struct bfc_who_block blocks[SLOTS];
    struct bfc_who who = {.blocks = blocks};
    for (unsigned i = 0; i < SLOTS; i++)
        if (world->held[i])
            blocks[who.header.blocks++] = (struct bfc_who_block){
                .start = world->held[i], .requested = 1, .state = BFC_WHO_IN_USE};
    return who;
}

/* What a reader knows, who believes all that it reads. */
struct belief {
    bool in_use[2 * SLOTS + 1];
    unsigned wrong, events;
};

static void read_round(struct belief *belief, const struct bfc_event *events, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool allocates = bfc_event_kind_of(events[i].what) == BFC_EVENT_ALLOCATE;
        bool *in_use = &belief->in_use[events[i].address / STEP];
        if (!events[i].address)
            continue;
        belief->events++;
        belief->wrong += *in_use == allocates;
        *in_use = allocates;
    }
}

static unsigned wrong_at_the_end(const struct world *world, const struct belief *belief) {
    unsigned wrong = 0;
    for (unsigned i = 1; i <= 2 * SLOTS; i++) {
        bool held = false;
        for (unsigned slot = 0; slot < SLOTS; slot++)
            held |= world->held[slot] == (uint64_t)i * STEP;
        wrong += held != belief->in_use[i];
    }
    return wrong;
}

static struct world world;
static struct event_order order;
static uint64_t seen[BFC_EVENTS];

/* What is new since the last look, as a reader adds it; by number alone, what that makes of it. */
static void look(struct belief *ordered, struct belief *numbered, bool last) {
    static struct bfc_event fresh[BFC_EVENTS];
    size_t count = 0;
    for (unsigned i = 0; i < BFC_EVENTS; i++) {
        if (seen[i] != world.job.events[i].stamp) {
            fresh[count++] = world.job.events[i];
            event_order_add(&order, &world.job.events[i]);
        }
        seen[i] = world.job.events[i].stamp;
    }
    read_round(numbered, fresh, count);
    count = event_order_round(&order, last);
    read_round(ordered, order.ordered, count);
}

static void forget_all(void) {
    event_order_free(&order);
    order.waiting_count = 0;
    for (unsigned i = 0; i < BFC_EVENTS; i++)
        seen[i] = 0;
}

Test(event_order, looked_at_often_it_is_nearly_always_right) {
    unsigned wrong = 0, wrong_by_number = 0, events = 0, at_the_end = 0;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct belief ordered = {0}, numbered = {0};
        begin(&world, seed);
        forget_all();
        struct bfc_who who = answer(&world);
        event_order_begin(&order, &world.job, &who, &world.job);
        for (int i = 0; i < 200; i++) {
            call(&world, THREADS, 13);
            look(&ordered, &numbered, i == 199);
        }
        wrong += ordered.wrong;
        wrong_by_number += numbered.wrong;
        events += ordered.events;
        at_the_end += wrong_at_the_end(&world, &ordered);
        cr_expect_eq(ordered.events, numbered.events, "none is lost");
    }
    cr_log_info("%u events: %u wrong, by number alone %u", events, wrong, wrong_by_number);
    cr_expect_lt(wrong, events / 100);
    cr_expect_lt(10 * wrong, wrong_by_number);
    cr_expect_leq(at_the_end, 20 * 4);
}

Test(event_order, of_one_thread_it_is_that_of_the_numbers) {
    struct belief ordered = {0}, numbered = {0};
    begin(&world, 1);
    forget_all();
    struct bfc_who who = answer(&world);
    event_order_begin(&order, &world.job, &who, &world.job);
    for (int i = 0; i < 50; i++) {
        call(&world, 1, 60);
        look(&ordered, &numbered, false);
    }
    cr_expect_eq(ordered.wrong, 0);
    cr_expect_eq(order.waiting_count, 0);
    cr_expect_eq(wrong_at_the_end(&world, &ordered), 0);
}

Test(event_order, the_list_tells_what_was_there_before) {
    struct belief ordered = {0}, numbered = {0};
    begin(&world, 3);
    forget_all();
    call(&world, 1, 8000);
    struct bfc_who who = answer(&world);
    event_order_begin(&order, &world.job, &who, &world.job);
    for (unsigned i = 1; i <= 2 * SLOTS; i++) {
        const struct event_place *place = address_table_find(&order.places, (uint64_t)i * STEP);
        ordered.in_use[i] = place && place->in_use;
    }
    look(&ordered, &numbered, true);
    cr_expect_eq(ordered.wrong, 0);
    cr_expect_eq(wrong_at_the_end(&world, &ordered), 0);
}

Test(event_order, what_does_not_fit_waits_for_a_round) {
    static const struct bfc_who nobody;
    static const struct bfc_job none;
    const struct bfc_event freed = {
        .stamp = 1, .what = bfc_event_what(BFC_EVENT_FREE, 0, 5), .address = STEP};
    const struct bfc_event allocated = {
        .stamp = 9, .what = bfc_event_what(BFC_EVENT_ALLOCATE, 0, 6), .address = STEP};
    forget_all();
    event_order_begin(&order, &none, &nobody, &none);
    event_order_add(&order, &freed);
    cr_expect_eq(event_order_round(&order, false), 0);
    event_order_add(&order, &allocated);
    cr_assert_eq(event_order_round(&order, false), 2);
    cr_expect_eq(order.ordered[0].stamp, 9);
    cr_expect_eq(order.ordered[1].stamp, 1);
    event_order_add(&order, &freed);
    cr_expect_eq(event_order_round(&order, false), 0);
    cr_expect_eq(event_order_round(&order, false), 1, "what it waited for has not come");
    event_order_forget(&order);
    event_order_add(&order, &freed);
    cr_expect_eq(event_order_round(&order, false), 1, "nothing is known");
}

Test(event_order, a_later_list_corrects_it) {
    static const struct bfc_job none;
    static struct bfc_job later;
    const struct bfc_event events[] = {
        {.stamp = 1, .what = bfc_event_what(BFC_EVENT_ALLOCATE, 2, 5), .address = STEP},
        {.stamp = 2, .what = bfc_event_what(BFC_EVENT_ALLOCATE, 2, 5), .address = 2 * STEP},
        {.stamp = 3, .what = bfc_event_what(BFC_EVENT_ALLOCATE, 2, 5), .address = 3 * STEP}};
    struct bfc_who_block block = {.start = 2 * STEP, .state = BFC_WHO_IN_USE};
    const struct bfc_who who = {.header = {.blocks = 1}, .blocks = &block};
    forget_all();
    for (int i = 0; i < 3; i++)
        event_order_add(&order, &events[i]);
    cr_assert_eq(event_order_round(&order, false), 3);
    later.event_count = 1;
    later.events[0] = events[2];
    cr_assert_eq(event_order_correct(&order, &none, &who, &later, 77), 1,
                 "one is listed, and one came meanwhile");
    cr_expect_eq(order.ordered[0].address, STEP);
    cr_expect_eq(order.ordered[0].what, bfc_event_what(BFC_EVENT_FREE, 2, 77));
    cr_expect_eq(event_order_correct(&order, &none, &who, &later, 78), 0);
}

/* A job's last calls as bfcstat snapshot keeps them: more than fit, out of order, and with sizes.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/bfcstat/snapshot/write_snapshot.h"

static struct bfc_job job;

/* The ring as it is after `next` pairs' events: number 2n allocates at an address of its own, and
 * 2n + 1 frees what was allocated `behind` pairs before. */
static void fill_ring(uint64_t next, uint64_t behind) {
    uint64_t first = next > BFC_EVENTS ? next - BFC_EVENTS : 0;
    job.header.next_event = next;
    job.event_count = 0;
    for (uint64_t number = first; number < next; number++) {
        uint64_t pair = number / 2 - (number % 2 && number / 2 >= behind ? behind : 0);
        enum bfc_event_kind kind = number % 2 ? BFC_EVENT_FREE : BFC_EVENT_ALLOCATE;
        job.events[job.event_count++] = (struct bfc_event){.stamp = number + 1,
                                                           .what = bfc_event_what(kind, 0, number),
                                                           .address = (pair + 1) << 21,
                                                           .bytes = number % 2 ? 0 : 512 + pair};
    }
}

static long pickle_size(const struct calls *calls, const struct bfc_who *who) {
    struct moment moment = {.job = &job, .who = who, .calls = calls};
    FILE *file = tmpfile();
    who_names_begin(&moment.names, who, 0);
    cr_assert(write_pickle(&moment, file));
    long size = ftell(file);
    who_names_end(&moment.names);
    fclose(file);
    return size;
}

Test(calls, the_oldest_are_dropped) {
    static struct calls calls;
    static const struct bfc_who nobody;
    const uint64_t events = 4000000, behind = 1000;
    job.pools[0].state = BFC_POOL_ACTIVE;
    fill_ring(0, behind);
    calls_begin_before(&calls, &job, &nobody, &job);
    for (uint64_t next = BFC_EVENTS / 2; next <= events; next += BFC_EVENTS / 2) {
        fill_ring(next, behind);
        calls_add(&calls, &job);
    }
    calls_finish(&calls, &nobody);
    cr_expect_eq(calls.count, CALLS_MOST);
    cr_expect_eq(calls.dropped + calls.count, job.header.next_event);
    cr_expect_eq(calls.unseen.lost, 0);
    cr_expect_eq(calls.untold, 0, "what was dropped told how large the first freed blocks are");
    for (size_t i = 0; i < calls.count; i++) {
        const struct bfc_event *event = &calls.list[i].event;
        cr_assert_eq(event->stamp, job.header.next_event - CALLS_MOST + i + 1);
        cr_assert_eq(event->bytes, 511 + (event->address >> 21));
    }
    cr_expect_lt(pickle_size(&calls, &nobody), 100 << 20);
    calls_free(&calls);
}

Test(calls, frees_of_unknown_blocks_are_counted) {
    static struct calls calls;
    static const struct bfc_who nobody;
    fill_ring(2 * BFC_EVENTS, 10);
    calls_begin_before(&calls, &job, &nobody, &job);
    calls_add(&calls, &job);
    calls_finish(&calls, &nobody);
    cr_expect_eq(calls.count, BFC_EVENTS);
    cr_expect_eq(calls.untold, 10);
    calls_free(&calls);
}

Test(calls, rounds_that_went_by_are_lost) {
    static struct calls calls;
    static const struct bfc_who nobody;
    fill_ring(BFC_EVENTS, 1);
    calls_begin_before(&calls, &job, &nobody, &job);
    calls_add(&calls, &job);
    fill_ring(3 * BFC_EVENTS, 1);
    calls_add(&calls, &job);
    calls_finish(&calls, &nobody);
    cr_expect_eq(calls.unseen.lost, BFC_EVENTS);
    cr_expect_eq(calls.count, 2 * BFC_EVENTS);
    calls_free(&calls);
}

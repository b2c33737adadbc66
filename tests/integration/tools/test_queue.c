/* Whose turn it is among those who wait for one device's memory. */
#include <criterion/criterion.h>
#include <string.h>

#include "segment/queue.h"

/* Four processes in the order in which they came; each waits in its slot 0. */
static struct bfc_waiting all[4];

static void waits(size_t index, uint64_t bytes, uint64_t in_use, uint64_t reserved) {
    all[index] = (struct bfc_waiting){.pid = 100 - (int32_t)index,
                                      .since_ns = 1000 + index,
                                      .bytes = bytes,
                                      .in_use = in_use,
                                      .reserved = reserved};
}

static size_t next_of(size_t count, uint64_t reach) {
    size_t next = count;
    for (size_t i = 0; i < count; i++)
        if (bfc_queue_find_place(all, count, i, reach).is_next) {
            cr_expect_eq(next, count, "one at a time");
            next = i;
        }
    return next;
}

static size_t stuck_of(size_t count, uint64_t reach) {
    for (size_t i = 0; i < count; i++)
        if (bfc_queue_find_place(all, count, i, reach).is_stuck)
            return i;
    return count;
}

Test(queue, first_come_first_served) {
    waits(0, 50, 0, 0);
    waits(1, 10, 0, 0);
    waits(2, 10, 0, 0);
    cr_expect_eq(next_of(3, 60), 0);
    cr_expect_eq(stuck_of(3, 60), 3);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(bfc_queue_find_place(all, 3, i, 60).position, i + 1);
}

Test(queue, two_of_one_moment_are_in_order_too) {
    waits(0, 10, 0, 0);
    waits(1, 10, 0, 0);
    all[1].since_ns = all[0].since_ns;
    cr_expect_eq(next_of(2, 20), 1, "the lower pid");
    all[1].pid = all[0].pid;
    all[1].slot = 1;
    cr_expect_eq(next_of(2, 20), 0, "the lower slot");
}

Test(queue, who_cannot_be_served_is_passed_over) {
    waits(0, 130, 90, 90);
    waits(1, 50, 90, 90);
    cr_expect_eq(next_of(2, 76), 1);
    cr_expect_eq(stuck_of(2, 76), 2);
}

Test(queue, the_youngest_of_a_deadlock_is_told) {
    waits(0, 150, 100, 100);
    waits(1, 150, 50, 50);
    waits(2, 150, 50, 50);
    cr_expect_eq(stuck_of(3, 56), 2);
    cr_expect_eq(stuck_of(3, 150), 3, "the first one can be served");
}

Test(queue, nobody_is_told_where_that_would_serve_nobody) {
    waits(0, 200, 10, 10);
    waits(1, 200, 10, 10);
    cr_expect_eq(stuck_of(2, 56), 2, "others hold it");
    cr_expect_eq(next_of(2, 56), 0);
    cr_expect_eq(stuck_of(1, 56), 1);
}

Test(queue, what_the_waiting_cache_may_serve_one_of_them) {
    waits(0, 200, 10, 10);
    waits(1, 70, 10, 40);
    cr_expect_eq(next_of(2, 56), 1);
}

Test(queue, a_process_holds_its_memory_once_however_many_of_its_threads_wait) {
    waits(0, 100, 60, 60);
    waits(1, 100, 60, 60);
    waits(2, 100, 60, 60);
    all[2].pid = all[1].pid;
    all[2].slot = 1;
    cr_expect_eq(stuck_of(3, 39), 3, "60 of them would not do");
    cr_expect_eq(stuck_of(3, 40), 2);
}

Test(queue, who_has_not_looked_lately_is_not_there) {
    struct bfc_waiter waiter = {.bytes = 1, .seen_ns = UINT64_C(10000000000)};
    cr_expect(bfc_waiter_is_there(&waiter, waiter.seen_ns + BFC_WAITER_LOST_NS));
    cr_expect_not(bfc_waiter_is_there(&waiter, waiter.seen_ns + BFC_WAITER_LOST_NS + 1));
    cr_expect_not(bfc_waiter_is_there(&waiter, 1), "its clock is another one");
    waiter.bytes = 0;
    cr_expect_not(bfc_waiter_is_there(&waiter, waiter.seen_ns));
}

Test(queue, above_a_mib_the_driver_takes_pages) {
    const uint64_t mib = 1 << 20;
    cr_expect_eq(bfc_in_driver_pages(0), 0);
    cr_expect_eq(bfc_in_driver_pages(mib), mib);
    cr_expect_eq(bfc_in_driver_pages(mib + 1), 2 * mib);
    cr_expect_eq(bfc_in_driver_pages(2 * mib), 2 * mib);
    cr_expect_eq(bfc_in_driver_pages(25 * mib), 26 * mib);
    cr_expect_eq(bfc_in_driver_pages(UINT64_MAX), UINT64_MAX);
}

static const uint8_t HERE[16] = {1, 2}, ELSEWHERE[16] = {1, 3};
static _Alignas(4096) char segment[BFC_SEGMENT_SIZE];
static struct bfc_segment_header *const header = (void *)segment;

/* A job with a pool on each. */
static struct bfc_segment_pool *two_devices(void) {
    struct bfc_segment_pool *sections = bfc_segment_sections(header);
    sections[0].state = sections[1].state = BFC_POOL_ACTIVE;
    memcpy(sections[0].device_uuid, HERE, sizeof HERE);
    memcpy(sections[1].device_uuid, ELSEWHERE, sizeof ELSEWHERE);
    return sections;
}

Test(queue, what_a_job_was_told_is_forgotten_after_its_time) {
    struct bfc_segment_pool *sections = two_devices();
    struct bfc_awaited told = {.bytes = 77, .from_here = 7, .until_ns = UINT64_MAX};
    cr_expect_not(bfc_waiters_exist(header));
    bfc_waiters_announce(header, HERE, &told, 1);
    cr_expect(bfc_waiters_exist(header));
    struct bfc_awaited known = bfc_waiters_want(&sections[0]);
    cr_expect(known.bytes == 77 && known.from_here == 7);
    cr_expect_eq(bfc_waiters_want(&sections[1]).bytes, 0);
    cr_expect_eq(header->request, 1, "its helper is woken");
    told.bytes = 78;
    bfc_waiters_announce(header, HERE, &told, 1);
    cr_expect_eq(header->request, 1, "but once");
    bfc_waiters_note_given(header, HERE);
    cr_expect_eq(bfc_waiters_want(&sections[0]).from_here, UINT64_MAX);
    told.until_ns = 1;
    bfc_waiters_announce(header, HERE, &told, 1);
    cr_expect_not(bfc_waiters_exist(header));
    cr_expect_eq(bfc_waiters_want(&sections[0]).bytes, 0);
}

Test(queue, each_device_has_an_announcement_of_its_own) {
    struct bfc_segment_pool *sections = two_devices();
    struct bfc_awaited told = {.bytes = 77, .from_here = 7, .until_ns = UINT64_MAX};
    bfc_waiters_announce(header, HERE, &told, 1);
    told.bytes = 5;
    bfc_waiters_announce(header, ELSEWHERE, &told, 1);
    cr_expect_eq(bfc_waiters_want(&sections[0]).bytes, 77);
    cr_expect_eq(bfc_waiters_want(&sections[1]).bytes, 5);
    bfc_waiters_note_given(header, HERE);
    cr_expect_eq(bfc_waiters_want(&sections[0]).from_here, UINT64_MAX);
    cr_expect_eq(bfc_waiters_want(&sections[1]).from_here, 7);
    told.until_ns = 1;
    bfc_waiters_announce(header, HERE, &told, 1);
    cr_expect(bfc_waiters_exist(header), "on the other device");
}

Test(queue, nothing_is_announced_where_a_context_has_ended_or_memory_is_the_hosts) {
    struct bfc_segment_pool *sections = two_devices();
    struct bfc_awaited told = {.bytes = 77, .from_here = 7, .until_ns = UINT64_MAX};
    sections[0].state = BFC_POOL_ENDED;
    sections[1].memory = BFC_MEMORY_HOST;
    bfc_waiters_announce(header, HERE, &told, 1);
    bfc_waiters_announce(header, ELSEWHERE, &told, 1);
    cr_expect_not(bfc_waiters_exist(header));
}

/* Deadlock among jobs that wait for memory of several devices. */
#include <criterion/criterion.h>

#include "segment/deadlock.h"

enum { DEVICES = 3, TOTAL = 256 };

static struct bfc_claimant all[3];

/* A process with so much in use on each device, which waits on one of them. */
static void waits(size_t index, uint32_t device, uint64_t bytes, uint64_t a, uint64_t b,
                  uint64_t c) {
    const uint64_t in_use[DEVICES] = {a, b, c};
    all[index] = (struct bfc_claimant){.pid = 100 + (int32_t)index, .holdings = DEVICES};
    for (uint32_t i = 0; i < DEVICES; i++)
        all[index].holding[i] = (struct bfc_holding){{(uint8_t)i}, TOTAL, in_use[i]};
    all[index].claim[0] = (struct bfc_claim){bytes, 1000 + index, device};
}

static size_t told_of(size_t count) {
    size_t told = count;
    for (size_t i = 0; i < count; i++)
        if (bfc_deadlock_is_ours(all, count, i)) {
            cr_expect_eq(told, count, "one alone is told");
            told = i;
        }
    return told;
}

Test(deadlock, the_younger_of_two_is_told) {
    waits(0, 1, 150, 160, 0, 0);
    waits(1, 0, 150, 0, 160, 0);
    cr_expect_eq(told_of(2), 1);
}

Test(deadlock, there_is_none_where_one_of_them_can_be_served) {
    waits(0, 1, 150, 160, 0, 0);
    waits(1, 0, 96, 0, 160, 0);
    cr_expect_eq(told_of(2), 2);
}

Test(deadlock, a_circle_of_three) {
    waits(0, 1, 150, 160, 0, 0);
    waits(1, 2, 150, 0, 160, 0);
    waits(2, 0, 150, 0, 0, 160);
    cr_expect_eq(told_of(3), 2);
    waits(2, 2, 90, 0, 0, 160);
    cr_expect_eq(told_of(3), 3, "the last one ends, and then the others");
}

Test(deadlock, who_is_in_nobodys_way_is_not_told) {
    waits(0, 1, 150, 160, 0, 0);
    waits(1, 0, 150, 0, 160, 0);
    waits(2, 0, 150, 0, 0, 10);
    cr_expect_eq(told_of(3), 1, "the third one is the youngest, and would help neither");
}

Test(deadlock, nobody_is_told_where_that_would_not_do) {
    waits(0, 1, 255, 160, 0, 0);
    waits(1, 0, 255, 10, 10, 0);
    cr_expect_eq(told_of(2), 1);
    waits(0, 1, 257, 160, 0, 0);
    cr_expect_eq(told_of(2), 2, "larger than the device");
}

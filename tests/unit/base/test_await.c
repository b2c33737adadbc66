/* bfc_await: what it returns, and how often it asks. */
#include <criterion/criterion.h>

#include "base/clock.h"

static bool is_third(void *argument) {
    return ++*(unsigned *)argument == 3;
}

static bool never(void *argument) {
    ++*(unsigned *)argument;
    return false;
}

Test(await, returns_as_soon_as_the_predicate_is_true) {
    unsigned asked = 0;
    cr_assert(bfc_await(is_third, &asked, 60 * BFC_NS_PER_SECOND));
    cr_assert_eq(asked, 3);
}

Test(await, asks_once_without_any_time) {
    unsigned asked = 0;
    cr_assert_not(bfc_await(never, &asked, 0));
    cr_assert_eq(asked, 1);
}

Test(await, is_false_once_the_time_is_over) {
    unsigned asked = 0;
    uint64_t start = bfc_now_ns();
    cr_assert_not(bfc_await(never, &asked, 2000000));
    cr_assert_geq(bfc_now_ns() - start, 2000000);
    cr_assert_gt(asked, 1);
}

Test(await, zero_is_what_it_waits_for) {
    unsigned count = 0;
    cr_assert(bfc_await_zero(&count, 0));
    count = 1;
    cr_assert_not(bfc_await_zero(&count, 0));
}

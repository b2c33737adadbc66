/* Periods of event streams, and folding. */
#include <criterion/criterion.h>

#include "planner/period/fold.h"
#include "tests/unit/plan/helpers.h"

/* A stream from letters: a capital allocates a block of that letter's size, a small one frees it.
 */
static struct events stream_of(const char *letters) {
    struct events events = {.list = calloc(4096, sizeof *events.list),
                            .allocations = calloc(4096, sizeof *events.allocations)};
    uint32_t last[26] = {0};
    for (; *letters != '\0'; letters++) {
        if (*letters >= 'A' && *letters <= 'Z') {
            last[*letters - 'A'] = events.allocations_count;
            events.allocations[events.allocations_count] =
                (struct allocation){.bytes = 512 * (uint64_t)(*letters - 'A' + 1),
                                    .birth = events.count,
                                    .death = NEVER};
            events.list[events.count++] = (struct event){events.allocations_count++, false};
        } else {
            const uint32_t a = last[*letters - 'a'];
            events.allocations[a].death = events.count;
            events.list[events.count++] = (struct event){a, true};
        }
    }
    return events;
}

static struct period period_of(const char *letters) {
    struct events events = stream_of(letters);
    struct period period;
    struct plan_error error;
    cr_assert(period_find(&period, &events, &error));
    events_free(&events);
    return period;
}

Test(period, is_found) {
    const struct period p = period_of("XYZABabCcABabCcABabCcABabCcABabCc");
    cr_assert_eq(p.prefix, 3);
    cr_assert_eq(p.length, 3);
    cr_assert_eq(p.length_events, 6);
    cr_assert_eq(p.repetitions, 5);
    cr_assert_not(p.jitter);
}

Test(period, survives_a_tail) {
    const struct period p = period_of("XYZABabCcABabCcABabCcABabCcABabCcABabCcQxyRSrz");
    cr_assert_eq(p.length, 3);
    cr_assert_geq(p.repetitions, 3);
}

Test(period, is_not_invented) {
    cr_assert_eq(period_of("").length, 0);
    cr_assert_eq(period_of("A").length, 0);
    cr_assert_eq(period_of("ABCDEFGHIJKLMNOP").length, 0);
    cr_assert_eq(period_of("ABabCcABabCc").length, 0); /* twice only */
    cr_assert_eq(period_of("ABCDEFGHAAA").length, 0);  /* too short to tell */
}

Test(fold, keeps_what_crosses_on_a_ring) {
    /* Each step frees the previous step's C after its own A: C crosses the end of the period. */
    struct events events = stream_of("PABabCAcBabCAcBabCAcBabCAcBabCAcBabCAcBab");
    struct period period;
    struct plan_error error;
    struct lifetimes l;
    cr_assert(period_find(&period, &events, &error));
    cr_assert_eq(period.length, 3);
    cr_assert(fold(&l, &events, &period, "trace", 0, &error), "%s", error.text);
    cr_assert_eq(l.visible, period.prefix + 3);
    uint32_t crossing = 0;
    for (uint32_t i = l.visible; i < l.count; i++) {
        cr_assert_eq(l.rows[i].size, l.rows[l.rows[i].alias].size);
        cr_assert_lt(l.rows[i].death, l.rows[l.rows[i].alias].birth + 1);
        crossing++;
    }
    cr_assert_eq(crossing, l.count - l.visible);
    for (uint32_t i = 0; i < l.count; i++)
        cr_assert_eq(l.rows[i].unplanned, 0);
    lifetimes_free(&l);
    events_free(&events);
}

Test(fold, leaves_what_piles_up_unplanned) {
    struct events events = stream_of("ABbABbABbABbABbABb"); /* A is never freed */
    struct period period;
    struct plan_error error;
    struct lifetimes l;
    cr_assert(period_find(&period, &events, &error));
    cr_assert_eq(period.length, 2);
    cr_assert(fold(&l, &events, &period, "trace", 0, &error));
    cr_assert_eq(l.rows[period.prefix].unplanned, 512);
    cr_assert_eq(l.rows[period.prefix].size, 0);
    lifetimes_free(&l);
    events_free(&events);
}

/* The validator agrees with comparing all pairs, and names what is wrong. */
#include <criterion/criterion.h>

#include "planner/model/validate.h"
#include "tests/unit/plan/helpers.h"

Test(validate, agrees_with_all_pairs) {
    uint64_t random = 1;
    unsigned valid = 0;
    for (int round = 0; round < 4000; round++) {
        const uint32_t n = 2 + (uint32_t)(random_next(&random) % 8);
        const uint64_t gap = random_next(&random) % 3;
        struct lifetimes l =
            random_lifetimes(n, 20, 20, 1 + (uint32_t)round % 3, round % 2, &random);
        uint64_t offsets[16], peaks[2];
        struct plan_error error;
        for (uint32_t i = 0; i < n; i++)
            offsets[i] = l.rows[i].alias != ROW_NONE ? offsets[l.rows[i].alias]
                                                     : random_next(&random) % 80 * 4;
        const bool good = validate(&l, offsets, 4, gap, peaks, &error);
        cr_assert_eq(good, !any_overlap(&l, offsets, 4, gap), "round %d: %s", round,
                     good ? "accepted" : error.text);
        valid += good;
        lifetimes_free(&l);
    }
    cr_assert(valid > 400 && valid < 3600, "%u", valid);
}

static void expect_fault(const char *text, const uint64_t *offsets, uint64_t align,
                         const char *words) {
    struct lifetimes l;
    struct plan_error error;
    uint64_t peaks[4];
    cr_assert(parse_text(&l, text, &error), "%s", error.text);
    cr_assert_not(validate(&l, offsets, align, 0, peaks, &error));
    cr_assert(strstr(error.text, words) != NULL, "%s", error.text);
    lifetimes_free(&l);
}

Test(validate, names_what_is_wrong) {
    expect_fault("id,lower,upper,size\na,0,2,4\nb,1,3,4\n", (uint64_t[]){0, 3}, 1,
                 "row 1 (line 2) at offset 0 and row 2 (line 3) at offset 3 overlap");
    expect_fault("id,lower,upper,size\na,0,2,4\n", (uint64_t[]){3}, 2, "multiple of 2");
    expect_fault("id,lower,upper,size,alias\na,0,2,4,\nb,5,6,4,a\n", (uint64_t[]){0, 4}, 1,
                 "row 2 (line 3): offset 4 is not that of its alias");
    expect_fault("id,lower,upper,size,group\na,0,2,4,g\nb,5,6,4,g\n", (uint64_t[]){0, 8}, 1,
                 "does not follow the row before in its group, which ends at 4");
    expect_fault("id,lower,upper,size,offset\na,0,2,4,8\n", (uint64_t[]){0}, 1,
                 "is not the given one, 8");
    expect_fault("id,lower,upper,size\na,0,2,4\n", (uint64_t[]){UINT64_MAX - 2}, 1, "2^64");
}

Test(validate, counts_spaces_apart) {
    struct lifetimes l;
    struct plan_error error;
    uint64_t peaks[3];
    cr_assert(parse_text(&l, "id,lower,upper,size,space\na,0,2,4,x\nb,0,3,8,y\n", &error));
    cr_assert(validate(&l, (uint64_t[]){0, 4}, 4, 0, peaks, &error));
    cr_assert_eq(peaks[0], 4);
    cr_assert_eq(peaks[1], 12);
    lifetimes_free(&l);
}

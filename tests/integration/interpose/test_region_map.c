/* The map of regions, against a plain list. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "interpose/arena/region_map.h"

static int first, second;

Test(region_map, finds_owners_inside_only) {
    cr_expect_null(bfc_region_owner(4096));
    cr_assert(bfc_region_add(4096, 4096, &first));
    cr_assert(bfc_region_add(8192, 512, &second));
    cr_expect_null(bfc_region_owner(4095));
    cr_expect_eq(bfc_region_owner(4096), &first);
    cr_expect_eq(bfc_region_owner(8191), &first);
    cr_expect_eq(bfc_region_owner(8192), &second);
    cr_expect_null(bfc_region_owner(8704));
    bfc_region_remove(4096, &second);
    cr_expect_eq(bfc_region_owner(4096), &first, "another owner's region stays");
    bfc_region_remove(4096, &first);
    cr_expect_null(bfc_region_owner(5000));
    cr_expect_eq(bfc_region_owner(8192), &second);
}

Test(region_map, a_new_region_displaces_stale_ones) {
    for (uint64_t i = 0; i < 10; i++)
        cr_assert(bfc_region_add(i * 1000, 1000, &first));
    cr_assert(bfc_region_add(2500, 3000, &second));
    cr_expect_eq(bfc_region_owner(1999), &first);
    cr_expect_null(bfc_region_owner(2000));
    cr_expect_eq(bfc_region_owner(2500), &second);
    cr_expect_eq(bfc_region_owner(5499), &second);
    cr_expect_null(bfc_region_owner(5999));
    cr_expect_eq(bfc_region_owner(6000), &first);
    bfc_region_remove_owner(&first);
    cr_expect_null(bfc_region_owner(6000));
    cr_expect_eq(bfc_region_owner(3000), &second);
}

Test(region_map, many_regions_in_any_order) {
    enum { REGIONS = 1000 };
    bool there[REGIONS] = {false};
    srand(1);
    for (int step = 0; step < 20000; step++) {
        unsigned i = (unsigned)rand() % REGIONS;
        if (there[i])
            bfc_region_remove(i * 4096u, &first);
        else
            cr_assert(bfc_region_add(i * 4096u, 4096, &first));
        there[i] = !there[i];
        unsigned probe = (unsigned)rand() % REGIONS;
        cr_assert_eq(bfc_region_owner(probe * 4096u + 77) != NULL, there[probe]);
    }
}

/* As a thread with a real-time priority sees it that keeps the writer from the processor. */
Test(region_map, a_reader_waits_for_no_writer_that_stands_still, .timeout = 10) {
    cr_assert(bfc_region_add(4096, 4096, &first));
    bfc_region_sequence++;
    cr_expect_eq(bfc_region_find(5000), &first);
    cr_expect_null(bfc_region_find(9000));
}

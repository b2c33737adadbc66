/* Notes on blocks. */
#include <criterion/criterion.h>

#include "interpose/pointers/block_attributes.h"

static const char first, second; /* arenas */

Test(notes, there_are_none_at_first) {
    struct bfc_block_attributes attributes;
    cr_assert_not(bfc_block_attributes_exist());
    cr_assert_not(bfc_block_attributes_find(1, &attributes));
    cr_assert_not(bfc_block_attributes_take(1, &attributes));
}

Test(notes, what_is_noted_is_found_and_taken_once) {
    struct bfc_block_attributes attributes;
    CUipcMemHandle handle = {.reserved = {7}};
    cr_assert(bfc_block_attributes_set_sync_memops(7, &first, true));
    cr_assert(bfc_block_attributes_set_handle(7, &first, &handle));
    cr_assert(bfc_block_attributes_find(7, &attributes));
    cr_assert(attributes.sync_memops && attributes.exported && attributes.owner == &first);
    cr_assert(bfc_block_attributes_set_sync_memops(7, &first, false));
    cr_assert(bfc_block_attributes_take(7, &attributes));
    cr_assert(!attributes.sync_memops && attributes.exported && attributes.handle.reserved[0] == 7);
    cr_assert_not(bfc_block_attributes_take(7, &attributes));
    cr_assert_not(bfc_block_attributes_exist());
}

Test(notes, the_first_handle_stands) {
    CUipcMemHandle one = {.reserved = {1}}, two = {.reserved = {2}};
    cr_assert(bfc_block_attributes_set_handle(7, &first, &one));
    cr_assert(bfc_block_attributes_set_handle(7, &first, &two));
    cr_assert_eq(two.reserved[0], 1);
}

Test(notes, many_are_kept_apart) {
    enum { MANY = 5000 };
    struct bfc_block_attributes attributes;
    for (uint64_t id = 1; id <= MANY; id++)
        cr_assert(bfc_block_attributes_set_sync_memops(id, id % 3 ? &first : &second, id % 2));
    for (uint64_t id = 1; id <= MANY; id++) {
        cr_assert(bfc_block_attributes_find(id, &attributes));
        cr_assert_eq(attributes.sync_memops, id % 2);
    }
    unsigned taken = 0;
    while (bfc_block_attributes_take_of(&second, &attributes))
        taken += attributes.owner == &second;
    cr_assert_eq(taken, MANY / 3);
    cr_assert_not(bfc_block_attributes_find(3, &attributes));
    cr_assert(bfc_block_attributes_find(4, &attributes));
}

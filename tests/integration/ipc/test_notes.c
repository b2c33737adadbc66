/* Notes on blocks. */
#include <criterion/criterion.h>

#include "interpose/ipc/block_attributes.h"

static const char first, second; /* arenas */

Test(notes, there_are_none_at_first) {
    struct bfc_block_attributes note;
    cr_assert_not(bfc_block_attributes_exist());
    cr_assert_not(bfc_block_attributes_find(1, &note));
    cr_assert_not(bfc_block_attributes_take(1, &note));
}

Test(notes, what_is_noted_is_found_and_taken_once) {
    struct bfc_block_attributes note;
    struct bfc_token token = {.generation = 7};
    cr_assert(bfc_block_attributes_set_sync_memops(7, &first, 0, true));
    cr_assert(bfc_block_attributes_set_token(7, &first, &token));
    cr_assert(bfc_block_attributes_find(7, &note));
    cr_assert(note.sync_memops && note.exported && note.owner == &first);
    cr_assert(bfc_block_attributes_set_sync_memops(7, &first, 0, false));
    cr_assert(bfc_block_attributes_take(7, &note));
    cr_assert(!note.sync_memops && note.exported && note.token.generation == 7);
    cr_assert_not(bfc_block_attributes_take(7, &note));
    cr_assert_not(bfc_block_attributes_exist());
}

Test(notes, the_first_token_stands) {
    struct bfc_token one = {.slot = 1}, two = {.slot = 2};
    cr_assert(bfc_block_attributes_set_token(7, &first, &one));
    cr_assert(bfc_block_attributes_set_token(7, &first, &two));
    cr_assert_eq(two.slot, 1);
}

Test(notes, many_are_kept_apart) {
    enum { MANY = 5000 };
    struct bfc_block_attributes note;
    for (uint64_t id = 1; id <= MANY; id++)
        cr_assert(bfc_block_attributes_set_sync_memops(id, id % 3 ? &first : &second, 0, id % 2));
    for (uint64_t id = 1; id <= MANY; id++) {
        cr_assert(bfc_block_attributes_find(id, &note));
        cr_assert_eq(note.sync_memops, id % 2);
    }
    unsigned taken = 0;
    while (bfc_block_attributes_take_of(&second, &note))
        taken += note.owner == &second;
    cr_assert_eq(taken, MANY / 3);
    cr_assert_not(bfc_block_attributes_find(3, &note));
    cr_assert(bfc_block_attributes_find(4, &note));
}

/* The pitches that are known: for which widths an answer of the driver holds. */
#include <criterion/criterion.h>

#include "interpose/features/pitch/pitches.h"

Test(pitches, none_is_known_at_first) {
    cr_expect_eq(bfc_pitch_known(0, 4, 100), 0);
    cr_expect_eq(bfc_pitch_known(0, 4, 0), 0);
    cr_expect_eq(bfc_pitch_known(-1, 4, 100), 0);
    cr_expect_eq(bfc_pitch_known(0, 5, 100), 0);
}

Test(pitches, an_answer_holds_up_to_the_pitch) {
    bfc_pitch_learn(0, 4, 600, 1024);
    cr_expect_eq(bfc_pitch_known(0, 4, 576), 0);
    cr_expect_eq(bfc_pitch_known(0, 4, 577), 1024, "no pitch lies within a unit");
    cr_expect_eq(bfc_pitch_known(0, 4, 600), 1024);
    cr_expect_eq(bfc_pitch_known(0, 4, 1024), 1024);
    cr_expect_eq(bfc_pitch_known(0, 4, 1025), 0);
    bfc_pitch_learn(0, 4, 520, 1024);
    cr_expect_eq(bfc_pitch_known(0, 4, 576), 1024);
    cr_expect_eq(bfc_pitch_known(0, 4, 512), 0);
}

Test(pitches, devices_and_elements_differ) {
    bfc_pitch_learn(0, 4, 600, 1024);
    cr_expect_eq(bfc_pitch_known(1, 4, 600), 0);
    cr_expect_eq(bfc_pitch_known(0, 8, 600), 0);
    cr_expect_eq(bfc_pitch_known(0, 16, 600), 0);
    bfc_pitch_learn(1, 4, 600, 640);
    bfc_pitch_learn(0, 16, 600, 768);
    cr_expect_eq(bfc_pitch_known(0, 4, 600), 1024);
    cr_expect_eq(bfc_pitch_known(1, 4, 600), 640);
    cr_expect_eq(bfc_pitch_known(0, 16, 600), 768);
}

Test(pitches, a_strange_answer_is_not_kept) {
    bfc_pitch_learn(0, 4, 600, 512);
    bfc_pitch_learn(0, 4, 600, 1000);
    bfc_pitch_learn(0, 3, 600, 1024);
    bfc_pitch_learn(300, 4, 600, 1024);
    cr_expect_eq(bfc_pitch_known(0, 4, 600), 0);
    cr_expect_eq(bfc_pitch_known(300, 4, 600), 0);
    bfc_pitch_learn(0, 4, SIZE_MAX, SIZE_MAX);
    cr_expect_eq(bfc_pitch_known(0, 4, SIZE_MAX), 0);
    bfc_pitch_learn(0, 4, 1, (size_t)1 << 40);
    cr_expect_eq(bfc_pitch_known(0, 4, 1), 0);
    bfc_pitch_learn(0, 4, 1, 1 << 30);
    cr_expect_eq(bfc_pitch_known(0, 4, 1), 1 << 30, "a wide step is noted in part");
    cr_expect_eq(bfc_pitch_known(0, 4, 1 << 30), 0);
}

/* What is forgotten is asked again; what is known is right. */
Test(pitches, more_widths_than_there_is_room_for) {
    size_t known = 0;
    for (size_t pitch = 512; pitch <= 512 * 1024; pitch += 512)
        bfc_pitch_learn(0, 4, pitch - 511, pitch);
    for (size_t width = 1; width <= 512 * 1024; width += 31) {
        size_t pitch = bfc_pitch_known(0, 4, width);
        if (pitch)
            cr_assert_eq(pitch, (width + 511) / 512 * 512);
        known += pitch != 0;
    }
    cr_expect_gt(known, 512 * 1024 / 31 / 8);
}

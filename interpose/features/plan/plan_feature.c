/* The feature `plan` (BFC_PLAN): allocations of a loop get planned addresses. */
#include "interpose/arena/state.h"
#include "interpose/features/plan/followed_plan.h"
#include "interpose/table/feature.h"

static void learn_if_ours(struct bfc_arena *published, bool is_ours) {
    bfc_plan_arena_published(published, is_ours);
    if (is_ours)
        bfc_learn_begin(published);
}

static void take_out_if_asked(struct bfc_segment_header *published) {
    uint32_t asked = bfc_load_acquire(&published->plan_asked);
    if (asked == published->plan_written)
        return;
    bfc_plan_take_out();
    bfc_store_release(&published->plan_written, asked);
}

static const struct bfc_feature plan = {
    .name = "plan",
    .slot = &bfc_plan_slot,
    .reader_asked = take_out_if_asked,
    .arena_making = bfc_plan_begin,
    .arena_publishing = bfc_plan_arena_publishing,
    .arena_published = learn_if_ours,
    .arena_freed = bfc_plan_forget,
};
BFC_REGISTER_FEATURE(plan);

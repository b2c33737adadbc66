/* The feature `pressure`: last resorts that involve other jobs, and the out-of-memory message. */
#include "interpose/config/process.h"
#include "interpose/features/pressure/pressure.h"
#include "interpose/table/feature.h"

static void look_for_waiters(struct bfc_arena *published, bool is_ours) {
    (void)is_ours;
    bfc_announce_to_new(published);
}

static void hand_over(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                      bool may_wait) {
    (void)arena, (void)pointer, (void)result;
    if (may_wait && bfc_process_watches_frees())
        bfc_hand_over();
}

static const struct bfc_feature pressure = {
    .name = "pressure",
    .arena_published = look_for_waiters,
    .freed = hand_over,
    .resorts = {{.rung = BFC_RUNG_JOBS, .event = BFC_EVENT_SAVED_JOBS, .serve = bfc_ask_jobs},
                {.rung = BFC_RUNG_WAIT, .event = BFC_EVENT_WAITED, .serve = bfc_wait_for_others}},
    .out_of_memory = bfc_explain_out_of_memory,
};
BFC_REGISTER_FEATURE(pressure);

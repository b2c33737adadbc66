/* The feature `pressure`: last resorts that involve other jobs, and the out-of-memory message. */
#include "interpose/features/pressure/pressure.h"
#include "interpose/table/feature.h"

static const struct bfc_feature pressure = {
    .name = "pressure",
    .arena_published = bfc_announce_to_new,
    .freed = bfc_hand_over,
    .resorts = {{.rung = BFC_RUNG_JOBS, .event = BFC_EVENT_SAVED_JOBS, .serve = bfc_ask_jobs},
                {.rung = BFC_RUNG_WAIT, .event = BFC_EVENT_WAITED, .serve = bfc_wait_for_others}},
    .out_of_memory = bfc_explain_out_of_memory,
};
BFC_REGISTER_FEATURE(pressure);

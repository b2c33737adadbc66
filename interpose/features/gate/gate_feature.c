/* The feature `gate`: counts submissions, and saves fences and waits by that (BFC_GATE). */
#include "interpose/features/gate/counted_frees.h"
#include "interpose/features/gate/only_stream.h"
#include "interpose/features/gate/program_waits.h"
#include "interpose/features/gate/submissions.h"
#include "interpose/table/feature.h"

static void note_arena(struct bfc_arena *published, bool is_ours) {
    (void)published, (void)is_ours;
    bfc_submissions_stop_at_exit();
}

static const struct bfc_counter counter = {
    .begin_process = bfc_only_stream_begin_process,
    .begin_thread = bfc_submitter_begin,
    .meet_stream = bfc_only_stream_meet,
    .hide = bfc_only_stream_hide,
    .leave = bfc_only_stream_leave,
    .bar = bfc_only_stream_bar,
    .unbar = bfc_only_stream_unbar,
    .stream_ending = bfc_only_stream_destroyed,
    .wait_begin = bfc_program_wait_begin,
    .wait_end = bfc_program_wait_end,
    .frees_so_far = bfc_only_stream_freed,
    .stream_waited = bfc_only_stream_waited_for,
    .count = bfc_submissions_count,
    .free = bfc_free_counted,
    .fences_complete = bfc_only_stream_completed,
};

static const struct bfc_feature gate = {
    .name = "gate",
    .counter = &counter,
    .arena_published = note_arena,
};
BFC_REGISTER_FEATURE(gate);

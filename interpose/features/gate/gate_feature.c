/* The feature `gate` (BFC_GATE): counts the calls that submit work, so that a free takes no fence
 * and waits for nothing where no work or only work of one stream came before. */
#include "interpose/config/process.h"
#include "interpose/driver/driver.h"
#include "interpose/features/gate/counted_frees.h"
#include "interpose/features/gate/only_stream.h"
#include "interpose/features/gate/program_waits.h"
#include "interpose/features/gate/submissions.h"
#include "interpose/features/gate/unseen_work.h"
#include "interpose/table/feature.h"

/* By default (BFC_GATE=auto) submissions are counted only where frees record fences: not in mode
 * sync, nor with a driver older than CUDA 12.5, which cannot record an event over a context. */
static bool is_wanted(const struct bfc_driver *driver) {
    struct bfc_options options;
    if (!bfc_process_read_options(&options))
        return false;
    if (options.gate == BFC_GATE_AUTO)
        return options.free_mode != BFC_FREE_SYNC && driver->can_fence;
    return options.gate == BFC_GATE_ON || options.gate == BFC_GATE_1;
}

static void note_arena(struct bfc_arena *published, bool is_ours) {
    (void)published, (void)is_ours;
    bfc_submissions_stop_at_exit();
    bfc_only_stream_tell_hidden();
}

static const struct bfc_counter counter = {
    .begin_thread = bfc_submitter_begin,
    .meet_stream = bfc_only_stream_meet,
    .hide = bfc_only_stream_hide,
    .note_table = bfc_unseen_note_table,
    .may_overlap = bfc_unseen_may_overlap,
    .leave = bfc_only_stream_leave,
    .bar = bfc_only_stream_bar,
    .unbar = bfc_only_stream_unbar,
    .close = bfc_only_stream_close,
    .open = bfc_only_stream_open,
    .stream_ending = bfc_only_stream_destroyed,
    .wait_begin = bfc_program_wait_begin,
    .wait_end = bfc_program_wait_end,
    .frees_so_far = bfc_only_stream_freed,
    .stream_waited = bfc_only_stream_waited_for,
    .count = bfc_submissions_count,
    .free = bfc_free_counted,
    .fences_complete = bfc_only_stream_completed,
};

static void begin_process(const struct bfc_driver *driver) {
    if (driver && is_wanted(driver)) {
        bfc_only_stream_begin_process();
        bfc_counter = &counter;
    }
}

static const struct bfc_feature gate = {
    .name = "gate",
    .driver_found = begin_process,
    .arena_published = note_arena,
};
BFC_REGISTER_FEATURE(gate);

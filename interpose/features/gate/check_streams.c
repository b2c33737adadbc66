/* Checks, at one free in 4,096, that the process's work really goes to one stream alone. */
#include "interpose/features/gate/check_streams.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/context/capture.h"
#include "interpose/features/gate/only_stream.h"
#include "interpose/features/gate/submissions.h"
#include "interpose/fences/fence_event.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/counter.h"

enum { CHECK_EVERY = 4096 };

/* How many nanoseconds the event over the whole context may stay incomplete after the event in the
 * only stream is complete: the driver may show two events as complete in either order. */
enum { LATE_NS = 20 * 1000 * 1000 };

static bool is_busy; /* atomic; true: a thread uses `check`, and other threads skip their check */
static struct {
    uint64_t arena;       /* `sequence` of the arena in whose context the events were made; 0: no
                             event was made yet */
    struct event *events; /* two: the first is recorded in the stream, the second over all
                             streams of the context */
    bool is_under_way;
    uint64_t late_since; /* when the second event was first seen incomplete although the first
                             was complete, by bfc_now_ns; 0: never */
} check;

/* Makes the two events in the arena's context, unless they are there. Events of an earlier arena
 * are only forgotten: the driver destroyed them with their context. False: the driver refused. */
static bool have_events(const struct bfc_driver *driver, const struct bfc_arena *arena) {
    if (check.arena == arena->sequence)
        return true;
    bfc_fence_events_free(check.events);
    check.events = NULL;
    check.is_under_way = false;
    check.arena = 0;
    bool made = bfc_fence_events_make(driver, arena->context, &check.events) == CUDA_SUCCESS &&
                bfc_fence_events_make(driver, arena->context, &check.events) == CUDA_SUCCESS;
    if (made)
        check.arena = arena->sequence;
    return made;
}

/* Records the event in the stream. If no stream was used yet, all work is complete, and nothing is
 * recorded: an event that was never recorded counts as complete, too. */
static CUresult record_in_stream(const struct bfc_driver *driver, CUevent event, CUstream stream) {
    if (stream == BFC_STREAM_NONE_YET)
        return CUDA_SUCCESS;
    bool is_stream = stream != BFC_STREAMS_MANY && stream != BFC_STREAM_CHANGING;
    return is_stream ? driver->cuEventRecord(event, stream) : CUDA_ERROR_NOT_READY;
}

/* Records the two events that a check compares (check_streams.h). If a thread submitted work
 * between the two records, they would cover different work, and the check is dropped. */
static void record_both(const struct bfc_driver *driver, const struct bfc_arena *arena,
                        CUstream stream) {
    uint64_t before, after;
    if (!bfc_submissions_count(&before) || !bfc_gate_enter())
        return;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    check.is_under_way =
        record_in_stream(driver, check.events->handle, stream) == CUDA_SUCCESS &&
        driver->cuCtxRecordEvent(arena->context, check.events->next->handle) == CUDA_SUCCESS &&
        bfc_submissions_count(&after) && after == before;
    check.late_since = 0;
    bfc_capture_restore(driver, mode);
    bfc_gate_leave();
}

/* Begins a check. bfc_only_stream_hold keeps the stream from being destroyed before its event is
 * recorded. It takes only_stream.c's lock, and bfc_gate_enter enters the gate. A thread that
 * changes the state of the streams takes the lock first, then the gate; the other order could
 * deadlock. */
static void begin_check(const struct bfc_driver *driver, const struct bfc_arena *arena) {
    if (!driver->cuEventRecord || !have_events(driver, arena))
        return;
    record_both(driver, arena, bfc_only_stream_hold());
    bfc_only_stream_release();
}

static void end_check(void) {
    check.is_under_way = false;
    bfc_fetch_add_relaxed(&bfc_segment_counters()->gate.checks, 1);
}

static void look_at_check(const struct bfc_driver *driver, const struct bfc_arena *arena) {
    if (!check.is_under_way || check.arena != arena->sequence || !bfc_gate_enter())
        return;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    CUresult in_stream = driver->cuEventQuery(check.events->handle);
    CUresult in_context = in_stream == CUDA_SUCCESS
                              ? driver->cuEventQuery(check.events->next->handle)
                              : CUDA_ERROR_NOT_READY;
    bfc_capture_restore(driver, mode);
    bfc_gate_leave();
    if (in_context == CUDA_SUCCESS)
        end_check();
    if (in_stream != CUDA_SUCCESS || in_context != CUDA_ERROR_NOT_READY)
        return;
    uint64_t now = bfc_now_ns();
    if (!check.late_since)
        check.late_since = now;
    if (now - check.late_since < LATE_NS)
        return;
    end_check();
    bfc_only_stream_hide("a check found work in another stream than the only one");
}

void bfc_check_streams(const struct bfc_driver *driver, const struct bfc_arena *arena,
                       uint64_t number) {
    if (bfc_exchange_acquire(&is_busy, true))
        return;
    if (check.is_under_way)
        look_at_check(driver, arena);
    else if (number % CHECK_EVERY == 0)
        begin_check(driver, arena);
    bfc_store_release(&is_busy, false);
}

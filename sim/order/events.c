// Events: what a stream, or a whole context, had under way at the moment of the record.
//
// A record puts a piece of work at the stream's end, which notes the time; the event holds the mark
// of it. Guarded by the lock.
#include "sim/order/events.h"

#include "sim/base/clock.h"
#include "sim/base/counts.h"
#include "sim/base/handle.h"
#include "sim/device/context.h"
#include "sim/graph/nodes.h"
#include "sim/order/event.h"
#include "sim/order/mark.h"
#include "sim/order/queue.h"
#include "sim/order/shared_event.h"
#include "sim/order/stream.h"

#include <stdlib.h>

struct record {
    struct sim_work work;
    struct sim_time *time;
    struct sim_shared_event *shared; // or NULL
    uint64_t number;                 // the shared event's
};

static void time_release(struct sim_time *time) {
    if (time != NULL && --time->references == 0) {
        free(time);
    }
}

// A call with an event is a call in its context. Events outlast the beginning of that one's end.
struct CUevent_st *sim_event_of(CUevent handle) {
    if (!sim_handle_is(handle, SIM_EVENT)) {
        return NULL;
    }
    if (!handle->context->alive) {
        sim_counts.trespasses++;
    }
    return handle;
}

static CUresult run_nothing(struct sim_work *work) {
    (void)work;
    return CUDA_SUCCESS;
}

// Called under the lock as the record's work ends.
static void drop_record(struct sim_work *work) {
    struct record *record = (struct record *)work;
    record->time->known = true;
    record->time->ms = sim_now_ms();
    time_release(record->time);
    if (record->shared != NULL) {
        sim_shared_event_complete(record->shared, record->number);
        sim_shared_event_release(record->shared);
    }
    free(record);
}

static const struct sim_work_type record_type = {.run = run_nothing, .drop = drop_record};

void sim_event_forget(struct CUevent_st *event) {
    sim_nodes_drop(&event->tips);
    event->captured_in = 0;
    sim_marks_drop(&event->marks);
    time_release(event->time);
    event->time = NULL;
}

void sim_event_end(struct CUevent_st *event) {
    sim_handle_remove(event);
    sim_event_forget(event);
    sim_shared_event_release(event->shared);
    free(event);
}

void sim_context_events_end(struct CUctx_st *context) {
    while (context->events != NULL) {
        struct CUevent_st *event = context->events;
        context->events = event->next;
        sim_event_end(event);
    }
}

CUresult sim_event_record(struct CUevent_st *event, struct CUstream_st *stream) {
    struct record *record = calloc(1, sizeof *record);
    struct sim_time *time = calloc(1, sizeof *time);
    if (record == NULL || time == NULL) {
        free(record);
        free(time);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    time->references = 2;
    record->time = time;
    record->work.type = &record_type;
    if (event->shared != NULL) {
        record->shared = event->shared;
        record->number = sim_shared_event_record(event->shared);
        sim_shared_event_hold(event->shared);
    }
    sim_event_forget(event);
    event->time = time;
    event->recorded = true;
    CUresult result = sim_submit(stream, &record->work);
    sim_marks_add(&event->marks, stream, stream->submitted);
    return result;
}

// Moments in streams' orders, and sets of them: what events record and waits wait for.
//
// A set holds at most one mark a stream (the latest), so joining is a maximum. Guarded by the lock.
#include "sim/order/mark.h"

#include "sim/device/context.h"
#include "sim/order/queue.h"

#include <stdio.h>
#include <stdlib.h>

static void make_room(struct sim_marks *marks) {
    if (marks->count < marks->room) {
        return;
    }
    marks->room = marks->room == 0 ? 4 : marks->room * 2;
    marks->at = realloc(marks->at, marks->room * sizeof *marks->at);
    if (marks->at == NULL) {
        fputs("sim: out of host memory\n", stderr);
        abort();
    }
}

void sim_marks_add(struct sim_marks *marks, struct CUstream_st *stream, uint64_t upto) {
    if (stream->done >= upto) {
        return;
    }
    for (size_t i = 0; i < marks->count; i++) {
        if (marks->at[i].stream == stream) {
            if (marks->at[i].upto < upto) {
                marks->at[i].upto = upto;
            }
            return;
        }
    }
    make_room(marks);
    sim_stream_hold(stream);
    marks->at[marks->count++] = (struct sim_mark){.stream = stream, .upto = upto};
}

void sim_marks_join(struct sim_marks *marks, const struct sim_marks *more) {
    for (size_t i = 0; i < more->count; i++) {
        sim_marks_add(marks, more->at[i].stream, more->at[i].upto);
    }
}

bool sim_marks_complete(struct sim_marks *marks) {
    for (size_t i = 0; i < marks->count;) {
        struct sim_mark mark = marks->at[i];
        if (mark.stream->done < mark.upto) {
            i++;
            continue;
        }
        marks->at[i] = marks->at[--marks->count];
        sim_stream_release(mark.stream);
    }
    return marks->count == 0;
}

void sim_marks_drop(struct sim_marks *marks) {
    for (size_t i = 0; i < marks->count; i++) {
        sim_stream_release(marks->at[i].stream);
    }
    free(marks->at);
    *marks = (struct sim_marks){0};
}

void sim_context_marks(const struct CUctx_st *context, struct sim_marks *marks) {
    for (struct CUstream_st *stream = context->streams; stream != NULL; stream = stream->next) {
        sim_marks_add(marks, stream, stream->submitted);
    }
}

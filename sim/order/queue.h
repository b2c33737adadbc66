// A stream as a queue of work. Guarded by the lock.
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "sim/base/work.h"
#include "sim/graph/nodes.h"
#include <pthread.h>

enum sim_stream_kind { SIM_STREAM_LEGACY, SIM_STREAM_THREAD, SIM_STREAM_CREATED };

struct CUstream_st {
    struct CUstream_st *next; // in its context's list
    struct CUctx_st *context; // NULL once the context has ended
    enum sim_stream_kind kind;
    unsigned flags;
    int priority;
    unsigned long long id;
    unsigned references;
    uint64_t submitted, done;
    struct sim_work *head, **tail;
    pthread_cond_t wake;
    bool worker, closing;          // worker: a thread, or its work is stepped
    struct CUstream_st *next_busy; // step.c, as long as it has work
    uint64_t due;                  // 0: not drawn
    bool running, blocked;
    struct sim_capture *capture; // that it takes part in
    struct sim_nodes tips;       // of the graph: what its next node depends on
    struct CUgreenCtx_st *green;
    struct CUstream_st
        *beside; // has the work that overlaps with this stream's; ends with the context
};

struct CUstream_st *sim_stream_new(struct CUctx_st *context, enum sim_stream_kind kind,
                                   unsigned flags, int priority);
void sim_stream_hold(struct CUstream_st *stream);
void sim_stream_release(struct CUstream_st *stream);
void sim_stream_leave_context(struct CUstream_st *stream);
bool sim_stream_idle(const struct CUstream_st *stream);

#endif

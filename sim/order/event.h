// An event as a record. Guarded by the lock.
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "sim/base/work.h"
#include "sim/graph/nodes.h"

struct sim_time {
    unsigned references;
    bool known;
    double ms;
};

struct CUevent_st {
    struct CUevent_st *next; // in its context's list
    struct CUctx_st *context;
    unsigned flags;
    bool recorded;
    struct sim_marks marks;
    struct sim_time *time;
    struct sim_shared_event *shared; // with other processes, or NULL
    unsigned long long captured_in;  // the capture of its last record, or 0
    struct sim_nodes tips;           // the stream's at that moment
};

#endif

// Stream captures: what they take and what they bar. Guarded by the lock.
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "sim/graph/graph.h"

struct sim_capture {
    struct sim_capture *next;
    unsigned long long id;
    unsigned long long thread; // that began it
    CUstreamCaptureMode mode;
    struct CUstream_st *origin;
    struct CUgraph_st *graph;
    bool borrowed; // the graph is the program's
    bool invalid;
    bool graphics;            // for a graphics API's command list: nothing is launched from here
    struct CUgraph_st *again; // the program's graph that is captured anew; or NULL
    struct CUstream_st **streams; // that take part, counted
    size_t count;
};

// Begins one in a stream, with a graph of the program's or one of its own (NULL). NULL: no memory.
struct sim_capture *sim_capture_begin(struct CUstream_st *stream, CUstreamCaptureMode mode,
                                      struct CUgraph_st *graph, const struct sim_nodes *tips);
void sim_capture_end(struct sim_capture *capture);     // its graph stays
void sim_capture_abandon(struct sim_capture *capture); // its own graph goes as well
CUresult sim_capture_invalidate(struct sim_capture *capture, CUresult error); // gives the error
unsigned long long sim_capture_thread(void); // this thread's number

// What bars an unsafe call of this thread now; invalidates the captures that do.
CUresult sim_capture_bars(void);
// Work put into a capturing stream becomes a node; takes the work.
CUresult sim_capture_add(struct CUstream_st *stream, struct sim_work *work);
// A call that a capture of the stream, or of any stream of the context, cannot take: the error,
// with the captures invalidated, or success where nothing captures.
CUresult sim_capture_refuses_stream(struct CUstream_st *stream);
CUresult sim_capture_refuses_context(struct CUctx_st *context);
// The legacy stream would depend on a capturing stream.
CUresult sim_capture_refuses_legacy(struct CUctx_st *context);
CUresult sim_capture_record(struct CUevent_st *event, struct CUstream_st *stream);
CUresult sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event);
CUresult sim_capture_add_event(struct CUstream_st *stream, CUgraphNodeType type,
                               struct CUevent_st *event);
// A new node at the stream's tips, or NULL with `*result` set; takes the work and the child.
struct CUgraphNode_st *sim_capture_node(struct CUstream_st *stream, CUgraphNodeType type,
                                        struct sim_work *work, CUresult *result);
CUresult sim_capture_add_child(struct CUstream_st *stream, struct CUgraph_st *child);
CUresult sim_capture_refuses_event(const struct CUevent_st *event);
void sim_capture_stream_end(struct CUstream_st *stream);
bool sim_capturing(const struct CUstream_st *stream);

#endif

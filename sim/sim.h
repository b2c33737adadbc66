// The stand-in GPU's internal header: its objects, its one lock and the border that every driver
// call passes. sim/README.md says what is modelled.
//
// Thread-safety: everything here is guarded by one lock, which SIM_ENTER takes and sim_leave gives
// back; only the work of streams, host functions and latencies run without it. Lock order: there is
// no second lock.
#ifndef SIM_H
#define SIM_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PAGE ((size_t)2 << 20) // what device memory is mapped by
#define SIM_GRAIN ((size_t)512)    // what small allocations are cut by
#define SIM_MAX_DEVICES 16
#define SIM_MAX_STACK 64 // contexts a thread may push
#define SIM_BEST_PRIORITY (-5)
#define SIM_STALE 0xdb // what a freed small allocation is overwritten with

// ---- the border (border.c) ----

// What a call needs before it may begin, and what bars it.
enum sim_needs {
    SIM_NOTHING = 0,      // may be called always, even before cuInit
    SIM_READY = 1,        // cuInit was called
    SIM_CURRENT = 2,      // a live context is current; its sticky error is the answer
    SIM_UNSAFE = 4,       // barred while a capture that forbids unsafe calls is under way
    SIM_UNCOUNTED = 8,    // not part of the total: look-ups and what libcudart asks privately
    SIM_IN_CALLBACK = 16, // allowed in a host function
};

// One exported function's counter, linked into a list at its first call.
struct sim_call {
    const char *name;
    struct sim_call *next;
    unsigned long long count;
    unsigned latency_us;
    size_t need;      // bytes
    const int *codes; // that it may be refused with at random; NULL: none
    bool known;
};

// Counts the call, waits out its latency and takes the lock, unless the call must fail at once.
CUresult sim_enter(struct sim_call *call, unsigned needs);
CUresult sim_leave(CUresult result);
void sim_count_trespasses(unsigned count); // other threads' in a context that is being destroyed

// One exported function: what it needs, then its answer, evaluated under the lock.
#define SIM_CALL(symbol, needs, parameters, answer)                                                \
    CUresult CUDAAPI symbol parameters {                                                           \
        static struct sim_call call_ = {.name = #symbol};                                          \
        CUresult barred_ = sim_enter(&call_, needs);                                               \
        if (barred_ != CUDA_SUCCESS) {                                                             \
            return barred_;                                                                        \
        }                                                                                          \
        return sim_leave(answer);                                                                  \
    }

// A function in both its forms: for the legacy and for the per-thread default stream.
#define SIM_PAIR(symbol, twin, needs, parameters, answer)                                          \
    CUresult CUDAAPI symbol parameters {                                                           \
        static const bool per_thread = false;                                                      \
        static struct sim_call call_ = {.name = #symbol};                                          \
        CUresult barred_ = sim_enter(&call_, needs);                                               \
        if (barred_ != CUDA_SUCCESS) {                                                             \
            return barred_;                                                                        \
        }                                                                                          \
        return sim_leave(answer);                                                                  \
    }                                                                                              \
    CUresult CUDAAPI twin parameters {                                                             \
        static const bool per_thread = true;                                                       \
        static struct sim_call call_ = {.name = #twin};                                            \
        CUresult barred_ = sim_enter(&call_, needs);                                               \
        if (barred_ != CUDA_SUCCESS) {                                                             \
            return barred_;                                                                        \
        }                                                                                          \
        return sim_leave(answer);                                                                  \
    }

// What the headers of 13.0 lack, in both their forms; and the code that one of them answers.
#define SIM_NEWER(symbol, parameters)                                                              \
    __attribute__((visibility("default"))) CUresult CUDAAPI symbol parameters;                     \
    __attribute__((visibility("default"))) CUresult CUDAAPI symbol##_ptsz parameters;
SIM_NEWER(cuStreamBeginRecaptureToGraph, (CUstream, CUstreamCaptureMode, CUgraph, void *, void *))
SIM_NEWER(cuStreamBeginCaptureToCig, (CUstream, void *))
SIM_NEWER(cuStreamEndCaptureToCig, (CUstream))
SIM_NEWER(cuStreamBeginUnheardOfCapture, (CUstream, uint64_t, uint64_t, uint64_t, uint64_t,
                                          uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))
enum { SIM_ERROR_GRAPH_RECAPTURE_FAILURE = 918 };

CUresult sim_initialise(void);
void sim_count_wait(bool blocked);
void sim_count_record(void);
void sim_count_device_wait(void);
// For tests, found with dlsym: how often an exported function was called; 0 for unknown names.
__attribute__((visibility("default"))) unsigned long long sim_call_count(const char *name);

// For tests: a call past every name and look-up, as NVIDIA's runtime has them from tables of its
// own; NULL: none of that name.
__attribute__((visibility("default"))) void (*sim_private_call(const char *name))(void);

// ---- options (options.c) ----

struct sim_options {
    int devices;
    size_t memory; // bytes of each device
    uint64_t seed; // 0: work is not delayed
    unsigned delay_us;
    unsigned step; // 0: streams have threads; else the longest a piece waits, in calls
    const char *stats;
    int driver_version;
    bool peers;
    const char *latency;
    const char *fail;
    const char *needs;
    const char *share;
};
extern struct sim_options sim_options;
void sim_options_read(void);
unsigned sim_latency_of(const char *call);
CUresult sim_refusal_of(struct sim_call *call); // SIM_FAIL (refuse.c)
size_t sim_need_of(const char *call);           // SIM_NEEDS, in bytes
void sim_refusals_read(void);
const int *sim_codes_of(const char *call); // documented ones, ended by 0; NULL: never at random
bool sim_stands_for(const char *name, size_t length, const char *call);
void sim_complain(const char *name, const char *value, const char *accepted);
uint64_t sim_mix(uint64_t state); // splitmix64, for seeded choices

// ---- work in order: streams and marks (stream.c, mark.c) ----

// A moment in a stream's order: complete when the stream has done all up to it.
struct sim_mark {
    struct CUstream_st *stream; // counted
    uint64_t upto;
};

// Several moments; empty is complete.
struct sim_marks {
    struct sim_mark *at;
    size_t count, room;
};

void sim_marks_add(struct sim_marks *marks, struct CUstream_st *stream, uint64_t upto);
void sim_marks_join(struct sim_marks *marks, const struct sim_marks *more);
bool sim_marks_complete(struct sim_marks *marks); // forgets what is complete
void sim_marks_drop(struct sim_marks *marks);
CUresult sim_wait(struct sim_marks *marks); // the host waits; drops the marks

struct sim_work;

// What a kind of work does. `run` is called without the lock, the others with it. `clone` gives a
// piece that does the same once more, for graphs; kinds that no graph holds have none.
struct sim_work_type {
    CUresult (*run)(struct sim_work *work);
    void (*drop)(struct sim_work *work);
    struct sim_work *(*clone)(const struct sim_work *work);
    CUgraphNodeType node;
};

// A piece of a stream's work.
struct sim_work {
    struct sim_work *next;
    const struct sim_work_type *type;
    struct sim_marks waits;
    uint64_t number;
    struct CUctx_st *context;
};

// Some nodes of a graph; none is counted.
struct sim_nodes {
    struct CUgraphNode_st **at;
    size_t count, room;
};

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
};

// Puts work at a stream's end, behind what its kind and its context make it wait for.
CUresult sim_submit(struct CUstream_st *stream, struct sim_work *work);
// The stream that a handle means to the calling thread, or NULL with `*result` set.
struct CUstream_st *sim_stream_of(CUstream handle, bool per_thread, CUresult *result);
struct CUstream_st *sim_stream_new(struct CUctx_st *context, enum sim_stream_kind kind,
                                   unsigned flags, int priority);
void sim_stream_hold(struct CUstream_st *stream);
void sim_stream_release(struct CUstream_st *stream);
void sim_stream_close(struct CUstream_st *stream);
// Does the first piece, without the lock. False: it waits for the host and wants to be asked again.
bool sim_stream_work(struct CUstream_st *stream);
void sim_stream_rest(struct CUstream_st *stream);       // a stepped stream has no more work
CUresult sim_stream_finish(struct CUstream_st *stream); // the host waits for all of it
bool sim_stream_idle(const struct CUstream_st *stream);
void sim_progress_broadcast(void);
void sim_progress_wait(void);
void sim_sleep_on(pthread_cond_t *condition); // gives the lock back meanwhile
void sim_lock_take(void);                     // only for work that runs outside a call
void sim_lock_give(void);

// ---- a device that goes by calls (step.c) ----

void sim_step(void);                             // one driver call has passed
bool sim_step_ahead(void);                       // does what is due next; false: there is nothing
bool sim_step_begin(struct CUstream_st *stream); // has work from now on
void sim_step_look(void);                        // something may be due earlier than was known

// ---- events (event.c) ----

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
    unsigned long long captured_in; // the capture of its last record, or 0
    struct sim_nodes tips;          // the stream's at that moment
};

struct CUevent_st *sim_event_of(CUevent handle);
void sim_context_events_end(struct CUctx_st *context);

// ---- contexts (context.c) ----

struct CUctx_st {
    struct CUctx_st *next;
    struct sim_device *device;
    bool primary, alive;
    unsigned references; // of a primary context
    unsigned flags, version;
    unsigned long long id;
    CUresult error; // sticky: from here on every call's answer
    struct CUstream_st *streams;
    struct CUstream_st *legacy;
    struct sim_marks barrier; // all future work waits for these
    struct sim_slab *slabs;
    struct sim_allocation *allocations;
    struct CUevent_st *events;
    struct CUmod_st *modules;
    struct CUarray_st *arrays;
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache;
    struct CUctx_st **peers; // whose memory its kernels may reach
    size_t peer_count;
    struct CUctx_st *parent; // of a converted green context: the primary one
    bool graphics;           // made for work that a graphics API submits
    unsigned users;          // calls under way in it
};

struct CUctx_st *sim_current(void);        // for a converted green context, the primary one
struct CUctx_st *sim_current_handle(void); // as it was made current
bool sim_context_known(CUcontext handle);
CUresult sim_context_error(const struct CUctx_st *context);
void sim_context_fail(struct CUctx_st *context, CUresult error);
void sim_context_marks(const struct CUctx_st *context, struct sim_marks *marks);
CUresult sim_context_finish(struct CUctx_st *context); // the host waits for all of its streams

// What a thread has: its stack of contexts and its own default streams.
struct sim_thread {
    struct CUctx_st *stack[SIM_MAX_STACK];
    size_t depth;
    struct CUstream_st **streams;
    size_t stream_count;
    bool in_callback;
    CUstreamCaptureMode mode; // how captures of others bar this thread
    unsigned long long id;    // 0 until a capture asks
    struct CUctx_st *running; // whose work this thread is doing
    struct CUctx_st *used;    // current when the call under way was entered
};
struct sim_thread *sim_self(void);
struct CUstream_st *sim_thread_stream(struct CUctx_st *context);

// ---- devices (device.c) ----

struct sim_device {
    CUdevice ordinal;
    uintptr_t base;   // of the window of addresses that programs see; never accessible to the host
    char *shadow;     // where the bytes really are
    size_t pages;     // in the window
    size_t limit;     // pages of memory that the device has
    size_t used;      // of those
    int file;         // behind the shadow
    uintptr_t *owner; // of each page in the window: an allocation, a slab, or 0
    size_t hint;      // no free page lies before it
    struct CUctx_st primary;
};

// What other processes use of a device (share.c); nothing without SIM_SHARE. `take` says whether
// that many pages more are there, and notes them; `give` comes before they are given back.
bool sim_share_open(const char *path);
size_t sim_share_others(const struct sim_device *device);
bool sim_share_take(const struct sim_device *device, size_t pages);
void sim_share_give(const struct sim_device *device, size_t pages);

extern struct sim_device sim_devices[SIM_MAX_DEVICES];
struct sim_device *sim_device_of(CUdevice ordinal);
CUresult sim_devices_open(void);

// ---- memory (address.c, memory.c, host.c) ----

enum sim_kind {
    SIM_PLAIN,
    SIM_VARIABLE,
    SIM_ASYNC,
    SIM_GRAPH_MEMORY,
    SIM_ARRAY_MEMORY,
    SIM_VIRTUAL,
    SIM_IMPORTED
};

struct sim_allocation {
    uintptr_t start;
    size_t size;  // as asked
    size_t taken; // as mapped
    enum sim_kind kind;
    struct CUctx_st *context;
    struct sim_device *device;
    struct sim_slab *slab;
    unsigned long long buffer_id;
    size_t ledger_slot; // once it was exported (ipc.c)
    bool sync_memops;
    struct CUmemPoolHandle_st *pool; // of stream-ordered memory
    bool cached;                     // freed and kept by its pool
    bool freed; // no longer the program's, still mapped until the work before is done
    struct sim_allocation *next, **link; // in its context's list
};

// A page's owner: an allocation, a slab with the lowest bit set, or this: memory that is only
// reached through other addresses.
#define SIM_HIDDEN_PAGE ((uintptr_t)2)

uintptr_t sim_pages_take(struct sim_device *device, size_t pages, uintptr_t owner);
void sim_pages_give(struct sim_device *device, uintptr_t start, size_t pages);
struct sim_device *sim_device_at(uintptr_t address);
struct sim_allocation *sim_allocation_at(uintptr_t address); // NULL also for freed ones
CUresult sim_allocate(struct CUctx_st *context, size_t size, enum sim_kind kind,
                      struct sim_allocation **out);
void sim_allocation_end(struct sim_allocation *allocation);
void sim_context_memory_end(struct CUctx_st *context);
// Where the bytes of a span are for stream work, or NULL: nothing is mapped there.
char *sim_reach(uintptr_t address, size_t bytes);

struct sim_host_range {
    uintptr_t start;
    size_t size;
    unsigned flags;
    bool registered, managed;
    unsigned long long buffer_id;
    struct CUctx_st *context;
};
struct sim_host_range *sim_host_at(uintptr_t address);
CUresult sim_managed_free(CUdeviceptr pointer);

// Windows beside the devices': reserved addresses and other processes' memory (virtual.c, ipc.c).
bool sim_virtual_at(uintptr_t address);
char *sim_virtual_reach(uintptr_t address, size_t bytes); // NULL: not all is mapped
struct sim_allocation *sim_virtual_allocation(uintptr_t address);
void sim_context_imports_end(const struct CUctx_st *context);
void sim_ipc_forget(const struct sim_allocation *allocation);

// ---- copies (copy.c, copy3d.c) and arrays (array.c) ----

struct sim_place {
    uintptr_t start;
    size_t pitch, slice; // bytes from row to row, from layer to layer
};

struct sim_extent {
    size_t width, height, depth; // bytes, rows, layers
};

enum sim_wait { SIM_WAIT, SIM_LATER };

CUresult sim_copy_issue(const struct sim_place *to, const struct sim_place *from,
                        const struct sim_extent *extent, CUstream stream, bool per_thread,
                        enum sim_wait wait);
struct sim_work *sim_copy_work(const struct sim_place *to, const struct sim_place *from,
                               const struct sim_extent *extent);
// Where an array's bytes are; false: no array.
bool sim_array_place(CUarray array, struct sim_place *place);
void sim_context_arrays_end(struct CUctx_st *context);

// ---- peers, pools, green contexts (peer.c, pool.c, green.c) ----

bool sim_peer_reaches(const struct CUctx_st *context, const struct sim_device *device);
void sim_context_peers_end(struct CUctx_st *context);
void sim_peer_forget(struct CUctx_st *context, const struct CUctx_st *peer);
void sim_contexts_forget_peer(const struct CUctx_st *peer);
void sim_pool_forget(const struct sim_allocation *allocation);
void sim_pool_release(struct sim_allocation *allocation);
void sim_pool_trim(struct CUctx_st *context, const struct CUmemPoolHandle_st *pool, size_t keep);
void sim_contexts_drop_cached(const struct CUmemPoolHandle_st *pool, size_t keep);
unsigned long long sim_next_buffer_id(void);
struct CUctx_st *sim_green_view(CUcontext handle); // NULL: no converted green context
struct CUgreenCtx_st *sim_green_current(void);     // of this thread, or NULL
struct sim_marks *sim_green_barrier(struct CUgreenCtx_st *green);
void sim_green_marks(const struct CUgreenCtx_st *green, struct sim_marks *marks);
CUresult sim_green_record(struct CUctx_st *view, CUevent event);
CUresult sim_green_wait(struct CUctx_st *view, CUevent event);
CUresult sim_context_retain(struct sim_device *device);
void sim_context_give_back(struct sim_device *device);
unsigned long long sim_next_context_id(void);
void sim_event_forget(struct CUevent_st *event);

// ---- kernels (kernel.c, builtin.c, module.c) ----

#define SIM_MAX_PARAMETERS 64

struct CUfunc_st {
    struct CUfunc_st *next;  // in its image
    struct CUmod_st *module; // NULL: a library's
    char *name;
    size_t count; // of parameters
    size_t sizes[SIM_MAX_PARAMETERS], alignments[SIM_MAX_PARAMETERS];
};

struct sim_launch;
struct sim_builtin {
    const char *name;
    int (*code)(const struct sim_launch *launch);
};
extern const struct sim_builtin sim_builtins[]; // ends with a NULL name

struct CUctx_st *sim_module_context(const struct CUmod_st *module);
void sim_context_modules_end(struct CUctx_st *context);
CUresult sim_launch_new(const CUlaunchConfig *config, CUfunction function, void **parameters,
                        void **extra, struct sim_work **out);
void sim_devices_finish(void); // the host waits for all contexts

struct sim_work *sim_host_work_new(CUhostFn function, void *data);

// ---- captures (capture.c) ----

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

// ---- graphs (graph.c, node.c, exec.c) ----

struct CUgraphNode_st {
    struct CUgraphNode_st *next; // in its graph, in order of making
    struct CUgraph_st *graph;
    CUgraphNodeType type;
    struct sim_work *work;    // what it does; NULL: nothing, or one of the next
    struct CUgraph_st *child; // owned
    struct CUevent_st *event;
    struct sim_graph_memory *memory; // that it allocates
    CUdeviceptr freed;               // that it frees
    struct sim_nodes needs;
    struct CUgraphNode_st *twin; // scratch: its copy in a clone, or what it was cloned from
    bool disabled;
    unsigned mark; // scratch
};

struct CUgraph_st {
    struct CUgraphNode_st *first, **last;
    size_t count;
};

bool sim_nodes_add(struct sim_nodes *nodes, struct CUgraphNode_st *node);
bool sim_nodes_join(struct sim_nodes *nodes, const struct sim_nodes *more);
void sim_nodes_drop(struct sim_nodes *nodes);
struct CUgraph_st *sim_graph_new(void);
void sim_graph_drop(struct CUgraph_st *graph);
struct CUgraph_st *sim_graph_clone(struct CUgraph_st *graph);
// A node that depends on others; takes the work, also when it fails.
struct CUgraphNode_st *sim_node_new(struct CUgraph_st *graph, CUgraphNodeType type,
                                    struct sim_work *work, CUgraphNode const *needs, size_t count);
struct sim_graph_memory *sim_graph_memory_new(const struct sim_allocation *allocation);
// Gives a node memory that it allocates, at an address known from now on.
CUresult sim_graph_memory_attach(struct CUgraphNode_st *node, struct CUctx_st *context, size_t size,
                                 CUdeviceptr *out);
// An executable graph's copy of a node, or NULL.
struct CUgraphNode_st *sim_exec_node(CUgraphExec exec, CUgraphNode original);
CUresult sim_launch_tell(const struct sim_work *work, CUDA_KERNEL_NODE_PARAMS_v2 *out);
CUresult sim_copy_new(const CUDA_MEMCPY3D *p, struct sim_work **out);
CUresult sim_set_new(const CUDA_MEMSET_NODE_PARAMS *p, struct sim_work **out);
CUresult sim_event_record(struct CUevent_st *event, struct CUstream_st *stream);
// All that the nodes depend on, themselves included, gets `mark` 1; all others 0.
void sim_graph_mark(struct CUgraph_st *graph, const struct sim_nodes *from);

// ---- handles (handle.c) ----

enum sim_handle {
    SIM_STREAM = 1,
    SIM_EVENT,
    SIM_MODULE,
    SIM_LIBRARY,
    SIM_FUNCTION,
    SIM_GRAPH,
    SIM_NODE,
    SIM_EXEC,
    SIM_POOL,
    SIM_GREEN,
    SIM_ARRAY,
    SIM_CHUNK,
};
bool sim_handle_add(const void *pointer, enum sim_handle kind);
void sim_handle_remove(const void *pointer);
bool sim_handle_is(const void *pointer, enum sim_handle kind);

// A detached thread with all signals blocked.
bool sim_thread_start(void *(*serve)(void *), void *argument);

double sim_now_ms(void);
void sim_pause(unsigned us);

#endif

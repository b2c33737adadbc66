// The stand-in GPU's internal header: its objects, its one lock and the border that every driver
// call passes. tests/sim/README.md says what is modelled.
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
    bool known;
};

// Counts the call, waits out its latency and takes the lock, unless the call must fail at once.
CUresult sim_enter(struct sim_call *call, unsigned needs);
CUresult sim_leave(CUresult result);

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

CUresult sim_initialise(void);
void sim_count_wait(bool blocked);
void sim_count_record(void);
void sim_count_device_wait(void);
// For tests, found with dlsym: how often an exported function was called; 0 for unknown names.
__attribute__((visibility("default"))) unsigned long long sim_call_count(const char *name);

// ---- options (options.c) ----

struct sim_options {
    int devices;
    size_t memory; // bytes of each device
    uint64_t seed; // 0: work is not delayed
    unsigned delay_us;
    const char *stats;
    int driver_version;
    bool peers;
    const char *latency;
    const char *fail;
};
extern struct sim_options sim_options;
void sim_options_read(void);
unsigned sim_latency_of(const char *call);
CUresult sim_refusal_of(struct sim_call *call); // SIM_FAIL
uint64_t sim_mix(uint64_t state);               // splitmix64, for seeded choices

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

// A piece of a stream's work. `run` is called without the lock, `drop` with it.
struct sim_work {
    struct sim_work *next;
    struct sim_marks waits;
    uint64_t number;
    CUresult (*run)(struct sim_work *work);
    void (*drop)(struct sim_work *work);
    struct CUctx_st *context;
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
    bool worker, closing;
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
CUresult sim_stream_finish(struct CUstream_st *stream); // the host waits for all of it
bool sim_stream_idle(const struct CUstream_st *stream);
void sim_progress_broadcast(void);
void sim_progress_wait(void);
void sim_sleep_on(pthread_cond_t *condition); // gives the lock back meanwhile
void sim_lock_take(void);                     // only for work that runs outside a call
void sim_lock_give(void);

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
};

struct CUctx_st *sim_current(void);
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

extern struct sim_device sim_devices[SIM_MAX_DEVICES];
struct sim_device *sim_device_of(CUdevice ordinal);
CUresult sim_devices_open(void);

// ---- memory (address.c, memory.c, host.c) ----

enum sim_kind { SIM_PLAIN };

struct sim_allocation {
    uintptr_t start;
    size_t size;  // as asked
    size_t taken; // as mapped
    enum sim_kind kind;
    struct CUctx_st *context;
    struct sim_device *device;
    struct sim_slab *slab;
    unsigned long long buffer_id;
    bool sync_memops;
    bool freed; // no longer the program's, still mapped until the work before is done
    struct sim_allocation *next, **link; // in its context's list
};

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
    bool registered;
    unsigned long long buffer_id;
    struct CUctx_st *context;
};
struct sim_host_range *sim_host_at(uintptr_t address);

// ---- handles (handle.c) ----

enum sim_handle { SIM_STREAM = 1, SIM_EVENT };
bool sim_handle_add(const void *pointer, enum sim_handle kind);
void sim_handle_remove(const void *pointer);
bool sim_handle_is(const void *pointer, enum sim_handle kind);

// A detached thread with all signals blocked.
bool sim_thread_start(void *(*serve)(void *), void *argument);

double sim_now_ms(void);
void sim_pause(unsigned us);

#endif

// What a thread has. A thread's own record needs no lock.
#ifndef SIM_THREAD_H
#define SIM_THREAD_H

#include "sim/base/limits.h"
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

// Its stack of contexts and its own default streams.
struct sim_thread {
    struct CUctx_st *stack[SIM_MAX_STACK];
    size_t depth;
    struct CUstream_st **streams;
    size_t stream_count;
    bool in_callback;
    CUstreamCaptureMode mode; // how captures of others bar this thread
    unsigned long long id;    // 0 until a capture asks
    struct CUctx_st *running; // whose work this thread is doing
    // Whose access that work has at the moment, if not its own device's; NULL otherwise.
    const struct sim_device *reaching;
    struct CUctx_st *used; // current when the call under way was entered
};

struct sim_thread *sim_self(void);
struct CUctx_st *sim_current(void);        // for a converted green context, the primary one
struct CUctx_st *sim_current_handle(void); // as it was made current

#endif

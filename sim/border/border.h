// The border that every driver call passes.
#ifndef SIM_BORDER_H
#define SIM_BORDER_H

#include "sim/base/call.h"
#include <cuda.h>

// What a call needs before it may begin, and what bars it.
enum sim_needs {
    SIM_NOTHING = 0,      // may be called always, even before cuInit
    SIM_READY = 1,        // cuInit was called
    SIM_CURRENT = 2,      // a live context is current; its sticky error is the answer
    SIM_UNSAFE = 4,       // barred while a capture that forbids unsafe calls is under way
    SIM_UNCOUNTED = 8,    // not part of the total: look-ups and what libcudart asks privately
    SIM_IN_CALLBACK = 16, // allowed in a host function
    SIM_STICKY = 64,      // needs no context; of a current one the sticky error is the answer
    SIM_MAPPING = 32,     // a call of virtual memory management, which devices may lack
};

// Counts the call, waits out its latency (which may depend on the bytes that it is about) and takes
// the lock, unless the call must fail at once.
CUresult sim_enter(struct sim_call *call, unsigned needs, size_t bytes);
CUresult sim_leave(CUresult result);
CUresult sim_initialise(void);

// One exported function: what it needs, the bytes that it is about, then its answer, evaluated
// under the lock.
#define SIM_SIZED(symbol, needs, bytes, parameters, answer)                                        \
    CUresult CUDAAPI symbol parameters {                                                           \
        static struct sim_call call_ = {.name = #symbol};                                          \
        CUresult barred_ = sim_enter(&call_, needs, bytes);                                        \
        if (barred_ != CUDA_SUCCESS) {                                                             \
            return barred_;                                                                        \
        }                                                                                          \
        return sim_leave(answer);                                                                  \
    }

#define SIM_CALL(symbol, needs, parameters, answer) SIM_SIZED(symbol, needs, 0, parameters, answer)

// A function in both its forms: for the legacy and for the per-thread default stream.
#define SIM_PAIR(symbol, twin, needs, parameters, answer)                                          \
    CUresult CUDAAPI symbol parameters {                                                           \
        static const bool per_thread = false;                                                      \
        static struct sim_call call_ = {.name = #symbol};                                          \
        CUresult barred_ = sim_enter(&call_, needs, 0);                                            \
        if (barred_ != CUDA_SUCCESS) {                                                             \
            return barred_;                                                                        \
        }                                                                                          \
        return sim_leave(answer);                                                                  \
    }                                                                                              \
    CUresult CUDAAPI twin parameters {                                                             \
        static const bool per_thread = true;                                                       \
        static struct sim_call call_ = {.name = #twin};                                            \
        CUresult barred_ = sim_enter(&call_, needs, 0);                                            \
        if (barred_ != CUDA_SUCCESS) {                                                             \
            return barred_;                                                                        \
        }                                                                                          \
        return sim_leave(answer);                                                                  \
    }

#endif

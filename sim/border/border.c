// The border that every driver call passes: the states of a process (before cuInit, running,
// forked, at exit), counting, latencies and refusals on demand. Guarded by the lock.
#include "sim/border/border.h"

#include "sim/base/clock.h"
#include "sim/base/counts.h"
#include "sim/base/halt.h"
#include "sim/base/limits.h"
#include "sim/base/lock.h"
#include "sim/base/options.h"
#include "sim/base/refuse.h"
#include "sim/border/stats.h"
#include "sim/border/tool.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/device/share.h"
#include "sim/device/thread.h"
#include "sim/memory/chunk.h"
#include "sim/order/capture.h"
#include "sim/order/step.h"

#include <stdlib.h>

static bool initialised, ended;
static unsigned inside;               // calls under way
static _Thread_local bool ended_here; // this thread runs the process's exit

static CUresult state_bars(unsigned needs) {
    if (!(needs & (SIM_READY | SIM_CURRENT))) {
        return CUDA_SUCCESS;
    }
    if (ended) {
        return CUDA_ERROR_DEINITIALIZED;
    }
    return initialised && !sim_forked() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

// SIM_NEEDS: is so much of each device free, for a moment?
static bool has_room(const struct sim_call *call) {
    size_t pages = call->need / SIM_PAGE;
    for (int i = 0; initialised && pages != 0 && i < sim_options.devices; i++) {
        size_t used = sim_devices[i].used + sim_share_others(&sim_devices[i]);
        if (used + pages > sim_devices[i].limit) {
            return false;
        }
    }
    return true;
}

static CUresult bars(struct sim_call *call, unsigned needs) {
    CUresult result = state_bars(needs);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (sim_self()->in_callback && !(needs & SIM_IN_CALLBACK)) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    if (needs & (SIM_CURRENT | SIM_STICKY)) {
        struct CUctx_st *context = sim_current();
        if (context == NULL && (needs & SIM_CURRENT)) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        result = context != NULL ? sim_context_error(context) : CUDA_SUCCESS;
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if (needs & SIM_UNSAFE) {
        result = sim_capture_bars();
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if ((needs & SIM_MAPPING) && !sim_options.mapping) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!has_room(call)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return needs & SIM_UNCOUNTED ? CUDA_SUCCESS : sim_refusal_of(call);
}

static void note_entry(void) {
    struct sim_thread *self = sim_self();
    inside++;
    sim_counts.late += ended && !ended_here;
    self->used = sim_current();
    if (self->used != NULL) {
        self->used->users++;
    }
}

static void note_exit(void) {
    struct sim_thread *self = sim_self();
    inside--;
    if (self->used != NULL) {
        self->used->users--;
    }
}

static unsigned cost_of(const struct sim_call *call, size_t bytes) {
    double us = call->latency_us + call->latency_us_per_mib * ((double)bytes / (1 << 20));
    return us < 1e9 ? (unsigned)us : 1000000000u;
}

CUresult sim_enter(struct sim_call *call, unsigned needs, size_t bytes) {
    sim_tool_tell(call->name);
    sim_lock_take();
    sim_options_read();
    sim_stats_introduce(call);
    call->count++;
    note_entry();
    if (!(needs & SIM_UNCOUNTED)) {
        sim_counts.total++;
        if (!sim_forked()) {
            sim_chunks_collect();
        }
        if (sim_options.step != 0 && !sim_forked()) {
            sim_step();
        }
    }
    unsigned cost = cost_of(call, bytes);
    bool halts = sim_halts(call);
    if (cost != 0 || halts) {
        sim_lock_give();
        sim_pause(cost);
        if (halts) {
            sim_halt();
        }
        sim_lock_take();
    }
    CUresult result = bars(call, needs);
    if (result != CUDA_SUCCESS) {
        sim_leave(result);
    }
    return result;
}

CUresult sim_leave(CUresult result) {
    note_exit();
    sim_lock_give();
    return result;
}

static void end(void) {
    if (sim_forked()) {
        return;
    }
    sim_lock_take();
    ended = true;
    ended_here = true;
    sim_counts.late += inside;
    sim_stats_write();
    sim_lock_give();
}

CUresult sim_initialise(void) {
    if (sim_forked()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (ended) {
        return CUDA_ERROR_DEINITIALIZED;
    }
    if (initialised) {
        return CUDA_SUCCESS;
    }
    CUresult result = sim_devices_open();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (!sim_forks_watch() || atexit(end) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    initialised = true;
    return CUDA_SUCCESS;
}

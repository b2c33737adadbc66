// What a thread has: its stack of contexts, and what it is doing.
#include "sim/device/thread.h"

#include "sim/device/context.h"

static _Thread_local struct sim_thread self;

struct sim_thread *sim_self(void) {
    return &self;
}

struct CUctx_st *sim_current_handle(void) {
    return self.depth == 0 ? NULL : self.stack[self.depth - 1];
}

struct CUctx_st *sim_current(void) {
    struct CUctx_st *handle = sim_current_handle();
    return handle != NULL && handle->parent != NULL ? handle->parent : handle;
}

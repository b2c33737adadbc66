// A green context as a record. Guarded by the lock.
#ifndef SIM_GREEN_H
#define SIM_GREEN_H

#include "sim/device/context.h"

struct CUgreenCtx_st {
    struct CUctx_st view; // its CUcontext
    struct sim_marks barrier;
};

#endif

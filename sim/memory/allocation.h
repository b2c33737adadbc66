// An allocation as a record. Guarded by the lock.
#ifndef SIM_ALLOCATION_H
#define SIM_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    size_t ledger_slot; // once it was exported (ledger.c)
    bool sync_memops;
    struct CUmemPoolHandle_st *pool; // of stream-ordered memory
    bool cached;                     // freed and kept by its pool
    bool freed; // no longer the program's, still mapped until the work before is done
    struct sim_allocation *next, **link; // in its context's list
};

#endif

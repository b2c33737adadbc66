// A context as a record. Guarded by the lock.
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

#include "sim/base/work.h"

struct CUctx_st {
    struct CUctx_st *next;
    struct sim_device *device;
    bool primary, alive;
    bool ending;         // a thread waits for its work, to end it
    unsigned references; // of a primary context
    unsigned attached;   // how often an own one was attached and not detached
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

#endif

// A piece of work of a stream, and the moments in streams that it waits for.
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    bool overlaps; // it may begin with the kernel before it in its stream, and end before that
};

#endif

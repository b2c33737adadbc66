/*
 * What a pointer points into, as the program sees it: one of its allocations from a pool, a block
 * that it imported from another process, or neither.
 */
#ifndef BFC_INTERPOSE_POINTER_LOOKUP_H
#define BFC_INTERPOSE_POINTER_LOOKUP_H

#include "interpose/arena/arena.h"

/* An address at which nothing is ever allocated, so that the driver answers for it as for freed
 * memory. */
#define BFC_NOWHERE ((CUdeviceptr)1)

enum bfc_pointer_kind {
    BFC_POINTER_FOREIGN,  /* neither pooled nor imported, so that the driver answers for it */
    BFC_POINTER_POOLED,   /* a live block */
    BFC_POINTER_IMPORTED, /* a block of another process, opened here */
    BFC_POINTER_GONE,     /* in the memory of a pool or an import, but in no block that is in use */
};

struct bfc_pointer {
    enum bfc_pointer_kind kind;
    CUdeviceptr start;
    uint64_t size; /* bytes that the program asked for */
    uint64_t id;   /* number of the allocation or import in this process; never used again */
    /* for BFC_POINTER_POOLED: the block's arena, valid as long as the result of bfc_arena_of; else
     * NULL */
    struct bfc_arena *arena;
    struct bfc_block_info block; /* for BFC_POINTER_POOLED: what the pool knows of the block */
    CUcontext of_pages; /* imported pages: the context in which they were opened; else NULL */
};

/* Whether the pointer is in a block of host memory (interpose/features/spill/spill.h), for which
 * the driver's answers differ from those for device memory. */
static inline bool bfc_pointer_is_spilled(const struct bfc_pointer *span) {
    return span->kind == BFC_POINTER_POOLED && bfc_arena_is_host(span->arena);
}

/* For calls that cannot be served for spilled blocks: logs that, and returns
 * CUDA_ERROR_NOT_SUPPORTED. */
CUresult bfc_pointer_refuse_spilled(const char *call);

/* Finds what a pointer points into, in O(log regions). The driver is asked only about a region that
 * is just being given back to it. Thread-safe. */
void bfc_pointer_lookup(CUdeviceptr pointer, struct bfc_pointer *span);

#endif

/*
 * What a pointer points into, as the program sees it: one of its allocations from a pool, a block
 * that it imported from another process, or neither.
 */
#ifndef BFC_INTERPOSE_POINTER_LOOKUP_H
#define BFC_INTERPOSE_POINTER_LOOKUP_H

#include "interpose/arena/arena.h"

/* An address at which nothing is ever allocated: the driver answers for it as for freed memory. */
#define BFC_NOWHERE ((CUdeviceptr)1)

enum bfc_pointer_kind {
    BFC_POINTER_FOREIGN,  /* not ours: the driver knows best */
    BFC_POINTER_POOLED,   /* a live block */
    BFC_POINTER_IMPORTED, /* a block of another process, opened here */
    BFC_POINTER_GONE,     /* ours, and not the program's (any more) */
};

struct bfc_pointer {
    enum bfc_pointer_kind kind;
    CUdeviceptr start;
    uint64_t size;           /* as asked, in bytes */
    uint64_t id;             /* of the allocation or import, in this process; never used again */
    struct bfc_arena *arena; /* pooled: whose; valid as bfc_arena_of's */
    struct bfc_block_info block; /* pooled */
    CUcontext of_pages; /* imported pages: whose the memory would be, had it none; else NULL */
};

/* Whether it is a block of host memory (interpose/features/spill/spill.h), of which the driver's
 * own answers are not those for device memory. */
static inline bool bfc_pointer_is_spilled(const struct bfc_pointer *span) {
    return span->kind == BFC_POINTER_POOLED && bfc_arena_is_host(span->arena);
}

/* What a call answers that cannot be for a spilled block: CUDA_ERROR_NOT_SUPPORTED, and a line says
 * so. */
CUresult bfc_pointer_refuse_spilled(const char *call);

/* O(log regions). Asks the driver only while it takes the region back. Thread-safe. */
void bfc_pointer_lookup(CUdeviceptr pointer, struct bfc_pointer *span);

#endif

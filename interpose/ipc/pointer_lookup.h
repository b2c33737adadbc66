/*
 * What a pointer points into, as the program sees it: one of its allocations from a pool, a block
 * that it imported from another process, or neither.
 */
#ifndef BFC_INTERPOSE_POINTER_LOOKUP_H
#define BFC_INTERPOSE_POINTER_LOOKUP_H

#include "interpose/arena/arena.h"

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
};

/* O(log regions); no driver call. Thread-safe. */
void bfc_pointer_lookup(CUdeviceptr pointer, struct bfc_pointer *span);

#endif

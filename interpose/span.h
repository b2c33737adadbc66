/*
 * What a pointer points into, as the program sees it: one of its allocations from a pool, a block
 * that it imported from another process, or neither.
 */
#ifndef BFC_INTERPOSE_SPAN_H
#define BFC_INTERPOSE_SPAN_H

#include "interpose/domain.h"

/* An address at which nothing is ever allocated: the driver answers for it as for freed memory. */
#define BFC_NOWHERE ((CUdeviceptr)1)

enum bfc_span_kind {
    BFC_SPAN_FOREIGN,  /* not ours: the driver knows best */
    BFC_SPAN_POOLED,   /* a live block */
    BFC_SPAN_IMPORTED, /* a block of another process, opened here */
    BFC_SPAN_GONE,     /* ours, and not the program's (any more) */
};

struct bfc_span {
    enum bfc_span_kind kind;
    CUdeviceptr start;
    uint64_t size;             /* as asked, in bytes */
    uint64_t id;               /* of the allocation or import, in this process; never used again */
    struct bfc_domain *domain; /* pooled: whose; valid as bfc_domain_of's */
    struct bfc_block_info block; /* pooled */
};

/* O(log regions); no driver call. Thread-safe. */
void bfc_span_of(CUdeviceptr pointer, struct bfc_span *span);

#endif

/*
 * Groups: blocks that one thread allocates in a row, as neighbours in one range.
 *
 * The range is a block of the pool from which each allocation cuts its own off the front; so each
 * is freed as any other. A group belongs to its thread and its domain.
 */
#ifndef BFC_INTERPOSE_GROUP_H
#define BFC_INTERPOSE_GROUP_H

#include "interpose/domain.h"

struct bfc_group {
    uint64_t left;    /* bytes of the range that are still to be had; 0: no group, or used up */
    CUdeviceptr next; /* where they begin */
    struct bfc_domain *domain; /* with a reference; NULL: no group */
};
extern __thread struct bfc_group bfc_group __attribute__((tls_model("initial-exec")));

/* Takes from the calling thread's group. False: it has none, or there is no room: as usual then. */
bool bfc_group_take(struct bfc_domain *domain, size_t bytes, CUdeviceptr *pointer);

#endif

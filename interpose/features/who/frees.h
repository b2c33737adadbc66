/*
 * Frees that failed because nothing was there to be freed, and where the block had been freed
 * before (BFC_SUMMARY=leaks). Thread-safe.
 */
#ifndef BFC_INTERPOSE_WHO_FREES_H
#define BFC_INTERPOSE_WHO_FREES_H

#include <cuda.h>

#include "interpose/features/who/sites.h"

/* After a free that succeeded, and after one that the pool refused. */
void bfc_who_freed(CUdeviceptr pointer);
void bfc_who_refused_free(CUdeviceptr pointer);

struct bfc_refused_free {
    uint64_t address;
    uint32_t site;
    uint32_t freed_at;     /* the site of the last free of this address; 0: not known */
    uint32_t allocated_at; /* of the block in use that the address lies in; 0: not known */
    uint64_t inside;       /* bytes from that block's begin; 0: there is no such block */
    uint64_t bytes;        /* as asked for, of that block */
    uint64_t times;
};

/* The first ones, by site and address; returns how many. Under the lock of the sites. */
size_t bfc_who_refused_frees(const struct bfc_refused_free **refused);

#endif

/* Blocks that a process never freed, and its invalid frees, with the stack of an earlier free of
 * the same address (BFC_SUMMARY=leaks). Thread-safe. */
#ifndef BFC_INTERPOSE_WHO_FREES_H
#define BFC_INTERPOSE_WHO_FREES_H

#include <cuda.h>

#include "interpose/config/process.h"
#include "interpose/features/who/sites.h"

/* Stores the call stack of a successful free, to show it if the address is freed once more. */
void bfc_who_freed(CUdeviceptr pointer);

/* Stores the call stack of a free that failed because no block in use begins at the address. */
void bfc_who_refused_free(CUdeviceptr pointer);

struct bfc_refused_free {
    uint64_t address;
    uint32_t site;
    /* index in bfc_sites of the call stack that last freed `address` with success; 0: not known */
    uint32_t freed_at;
    uint64_t times;
    /* The following fields are about the block in use that contains `address`, if there is one. */
    uint32_t allocated_at; /* index in bfc_sites of the call stack that allocated the block; 0: not
                              known */
    uint64_t inside;       /* offset of `address` in that block; 0: there is no such block */
    uint64_t bytes;        /* the size that the program requested for the block */
};

/* Sets `refused` to the list of invalid frees, one for each pair of address and call stack, and
 * returns its length. The list is bounded; once it is full, further pairs are not added. To be
 * called under bfc_who_lock. */
size_t bfc_who_refused_frees(const struct bfc_refused_free **refused);

/* To be called when the process exits, by one thread. Does nothing unless BFC_SUMMARY=leaks; else
 * writes the blocks that are still in use and the invalid frees to standard error, and makes
 * BFC_LEAK_EXIT the exit status if any block is still in use. */
void bfc_leaks_at_exit(const struct bfc_process *process);

#endif

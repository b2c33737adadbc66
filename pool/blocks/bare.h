/*
 * Addresses that lose their pages, and that get some: ready blocks become bare ones and the other
 * way round. Called under the lock.
 */
#ifndef BFC_POOL_BARE_H
#define BFC_POOL_BARE_H

#include "pool/blocks/state.h"

/* Makes room for the records of so many cuts; false: the host has no memory for them. */
bool bare_prepare_cuts(struct bfc_pool *pool, uint64_t cuts);

/* Adds a region that is one bare block. False: the host has no memory for its records. */
bool bare_add_region(struct bfc_pool *pool, bfc_addr start, uint64_t bytes, enum block_zone zone);

/* Makes a part of a ready block bare, or of ready blocks that follow each other in two regions: one
 * cut for each, for which room was made. */
void bare_strip(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* Makes it ready in the same way. */
void bare_back(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

#endif

/* Regions that are set apart for bfc_pool_allocate_at. Called under the lock. */
#ifndef BFC_POOL_APART_H
#define BFC_POOL_APART_H

#include "pool/blocks/internal.h"

/* From now on all allocations may take from every region. False: none was set apart. */
bool apart_end(struct bfc_pool *pool);

#endif

/* Makes a pool with a limit on its block records, for tests of what happens when it is reached. */
#ifndef BFC_POOL_CREATE_H
#define BFC_POOL_CREATE_H

#include "pool/pool.h"

/*
 * As bfc_pool_create, with address space for `most_blocks` block records, counting those of free
 * blocks and one for each region.
 */
enum bfc_status create_sized(struct bfc_pool **pool, const struct bfc_pool_config *config,
                             const struct bfc_upstream *upstream, uint64_t most_blocks);

#endif

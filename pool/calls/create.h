#ifndef BFC_POOL_CREATE_H
#define BFC_POOL_CREATE_H

#include "pool/pool.h"

/*
 * Does what bfc_pool_create does, with host addresses for `most_blocks` block records, which
 * include those of free blocks and one for each region. Tests use it to reach that limit.
 */
enum bfc_status create_sized(struct bfc_pool **pool, const struct bfc_pool_config *config,
                             const struct bfc_upstream *upstream, uint64_t most_blocks);

#endif

#ifndef BFC_POOL_CREATE_H
#define BFC_POOL_CREATE_H

#include "pool/pool.h"

/*
 * Makes a pool as bfc_pool_create does, but one whose block records have room for only
 * `most_blocks` blocks. Each block, live or free, and each region needs a record. Tests use this to
 * reach that limit.
 */
enum bfc_status create_sized(struct bfc_pool **pool, const struct bfc_pool_config *config,
                             const struct bfc_upstream *upstream, uint64_t most_blocks);

#endif

#ifndef BFC_POOL_CREATE_H
#define BFC_POOL_CREATE_H

#include "pool/pool.h"

/*
 * Does what bfc_pool_create does, but reserves host addresses for only `most_blocks` block records.
 * Each block, live or free, and each region needs a record. Tests use this to reach that limit.
 */
enum bfc_status create_sized(struct bfc_pool **pool, const struct bfc_pool_config *config,
                             const struct bfc_upstream *upstream, uint64_t most_blocks);

#endif

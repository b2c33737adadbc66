/* Serves an allocation for which no free block fits. Called under the lock, which is dropped around
 * every call of the upstream. */
#ifndef BFC_POOL_SERVE_H
#define BFC_POOL_SERVE_H

#include "pool/blocks/state.h"

enum bfc_status serve_miss(struct bfc_pool *pool, const struct request *request);

#endif

/* What an allocation does when no free block fits. Called under the lock. */
#ifndef BFC_POOL_SERVE_H
#define BFC_POOL_SERVE_H

#include "pool/blocks/state.h"

enum bfc_status serve_miss(struct bfc_pool *pool, const struct request *request);

#endif

/* Giving idle regions back. Called under the lock. */
#ifndef BFC_POOL_IDLE_H
#define BFC_POOL_IDLE_H

#include "pool/blocks/state.h"

void idle_collect(struct bfc_pool *pool);
/* Does RUNG_RELEASE_LARGE. False: it did not make room, though something may have gone back. */
bool idle_release_large(struct bfc_pool *pool, uint64_t size);

#endif

/* Gives idle regions back. Called under the lock, which is dropped during each release. */
#ifndef BFC_POOL_IDLE_H
#define BFC_POOL_IDLE_H

#include "pool/blocks/state.h"

void idle_collect(struct bfc_pool *pool);
/* Takes the step RUNG_RELEASE_LARGE for a request of `size`. False: not enough memory went back,
 * though some may have. */
bool idle_release_large(struct bfc_pool *pool, uint64_t size);

#endif

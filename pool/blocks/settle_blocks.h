/* Pending blocks become ready when their fences are complete. Called under the lock. */
#ifndef BFC_POOL_SETTLE_H
#define BFC_POOL_SETTLE_H

#include "pool/blocks/state.h"

#define FENCES_ALL UINT64_MAX
#define FENCES_A_CALL 64

/* Makes at most `most` pending blocks ready whose fences are known to be complete. */
void settle_completed(struct bfc_pool *pool, uint64_t most);

/* Notes that all fences up to this one are complete, but makes no block ready. */
void settle_note_complete(struct bfc_pool *pool, bfc_fence fence);

#endif

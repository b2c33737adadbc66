/* What an arena whose pool has pages keeps for them, in its slot of the feature's. */
#ifndef BFC_INTERPOSE_PAGING_H
#define BFC_INTERPOSE_PAGING_H

#include "interpose/arena/state.h"
#include "pool/pages.h"

struct bfc_paging {
    uint64_t granule;               /* least bytes of a page */
    CUmemAllocationProp properties; /* of each page */
    struct bfc_page_calls calls;
    uint64_t unreported; /* bytes made in the step under way, which no event tells yet; of whoever
                            has the pages' turn */
};

extern unsigned bfc_paging_slot;

/* NULL: the arena's pool has regions. */
static inline struct bfc_paging *bfc_paging_of(const struct bfc_arena *arena) {
    return arena->features[bfc_paging_slot];
}

#endif

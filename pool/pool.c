/* The pool: a placeholder until its first form lands. */
#include "pool/pool.h"

void bfc_pool_config_default(struct bfc_pool_config *config) {
    *config = (struct bfc_pool_config){
        .growth = BFC_GROWTH_DOUBLE,
        .growth_size = UINT64_C(2) << 20,
        .growth_max = UINT64_C(1) << 30,
        .limit = UINT64_MAX,
        .dirty_budget = UINT64_C(256) << 20,
    };
}

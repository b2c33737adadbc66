/* For comparison: a futex, after spinning as long as the pool's own lock before it naps. */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#define FUTEX_SPINS 9
#include "tests/bench/locks/futex.h"

#endif

/* For comparison: a futex, sleeping at once. */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#define FUTEX_SPINS 0
#include "tests/bench/locks/futex.h"

#endif

/* For comparison: a futex, sleeping at once. */
#ifndef BFC_POOL_LOCK_H
#define BFC_POOL_LOCK_H

#include "tests/bench/locks/futex.h"

#endif

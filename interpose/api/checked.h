/*
 * The checked build, with -DBFC_CHECKED: after every call the pool is checked, and a fault ends the
 * process. In the library that is installed the macro expands to nothing.
 */
#ifndef BFC_INTERPOSE_CHECKED_H
#define BFC_INTERPOSE_CHECKED_H

#ifdef BFC_CHECKED
#include <stdio.h>
#include <stdlib.h>
#define BFC_CHECK_POOL(pool)                                                                       \
    do {                                                                                           \
        const char *fault_ = bfc_pool_check(pool);                                                 \
        if (fault_) {                                                                              \
            fprintf(stderr, "bfcpreload: pool check: %s\n", fault_);                               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#else
#define BFC_CHECK_POOL(pool) ((void)0)
#endif

#endif

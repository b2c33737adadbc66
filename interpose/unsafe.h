/*
 * Where tests take a safeguard out, to prove that it would be missed, or look into the pools.
 *
 * In the library that is installed every macro here is nothing, or its argument. tests/mutants
 * builds libraries with one of the switches each.
 */
#ifndef BFC_INTERPOSE_UNSAFE_H
#define BFC_INTERPOSE_UNSAFE_H

#define BFC_UNSAFE_DO(...) __VA_ARGS__
#define BFC_UNSAFE_SKIP(...)

/* A freed block is handed out at once, whatever work may still use it. */
#ifdef BFC_UNSAFE_REUSE
#define BFC_WITHOUT_MARKS BFC_UNSAFE_DO
#else
#define BFC_WITHOUT_MARKS BFC_UNSAFE_SKIP
#endif

/* Contexts with peer access are not thought of. */
#ifdef BFC_UNSAFE_PEERS
#define BFC_WITHOUT_PEERS BFC_UNSAFE_DO
#else
#define BFC_WITHOUT_PEERS BFC_UNSAFE_SKIP
#endif

/* A freed block has its older neighbour's mark, as if merged without joining marks. */
#ifdef BFC_UNSAFE_JOIN
#define BFC_JOINED(mark) ((mark) > 1 ? (mark)-1 : (mark))
#else
#define BFC_JOINED(mark) (mark)
#endif

/* Our calls are made, whatever captures. */
#ifdef BFC_UNSAFE_GATE
#define BFC_WITHOUT_GATE BFC_UNSAFE_DO
#else
#define BFC_WITHOUT_GATE BFC_UNSAFE_SKIP
#endif

/* The gate is looked through, but not held. */
#ifdef BFC_UNSAFE_OPEN_GATE
#define BFC_WITHOUT_HOLDING BFC_UNSAFE_DO
#else
#define BFC_WITHOUT_HOLDING BFC_UNSAFE_SKIP
#endif

/* A mark is of the moment of the reuse, not of the free. */
#ifdef BFC_UNSAFE_LATE
#define BFC_WITHOUT_MOMENT BFC_UNSAFE_DO
#else
#define BFC_WITHOUT_MOMENT BFC_UNSAFE_SKIP
#endif

/* After every call the pool is checked, and a fault ends the process. */
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

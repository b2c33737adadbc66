/*
 * Groups: blocks that one thread allocates in a row, as neighbours in one range.
 *
 * The range is one block of the pool. Each allocation cuts a block off its front, which the program
 * frees like any other. A group belongs to its thread and its arena.
 */
#ifndef BFC_INTERPOSE_GROUP_H
#define BFC_INTERPOSE_GROUP_H

#include "base/compiler.h"
#include "interpose/arena/arena.h"

struct bfc_group {
    uint64_t left; /* how many bytes of the range are left; 0: none, or the thread has no group */
    CUdeviceptr next;        /* the address at which the bytes that are left begin */
    struct bfc_arena *arena; /* the group's arena, with a reference; NULL: no group */
};
extern __thread struct bfc_group bfc_group INITIAL_EXEC HIDDEN;

/* Allocates from the calling thread's group. False: the thread has no group, or the group has no
 * room; then the caller allocates as usual. */
bool bfc_group_take(struct bfc_arena *arena, size_t bytes, CUdeviceptr *pointer);

#endif

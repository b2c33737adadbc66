/*
 * Block attributes: whether SYNC_MEMOPS is set for a live block, and the IPC handle that the
 * library gave out for it, stored by the block's id, which is never reused. Few blocks have any.
 *
 * They are in a hash table under a lock, which is not held across calls to other files. While no
 * block has attributes, they cost a free one load. Thread-safe.
 */
#ifndef BFC_INTERPOSE_BLOCK_ATTRIBUTES_H
#define BFC_INTERPOSE_BLOCK_ATTRIBUTES_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct bfc_block_attributes {
    uint64_t id;       /* the block's id */
    const void *owner; /* the block's arena */
    bool sync_memops;  /* the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
    bool exported;     /* the library has given out the IPC handle `handle` for the block */
    CUipcMemHandle handle;
};

extern size_t bfc_block_attributes_count HIDDEN;

/* Whether any block has attributes: SYNC_MEMOPS, or an IPC handle. */
static inline bool bfc_block_attributes_exist(void) {
    return bfc_load_acquire(&bfc_block_attributes_count) != 0;
}

/* Returns what is stored for the block with this id; false: nothing. */
bool bfc_block_attributes_find(uint64_t id, struct bfc_block_attributes *attributes);

/* Stores whether the program has set SYNC_MEMOPS for the block `id` of the arena `owner`. False:
 * the host has no memory. */
bool bfc_block_attributes_set_sync_memops(uint64_t id, const void *owner, bool on);

/* Stores the block's IPC handle, unless the block has one already, which is then returned in
 * `handle`. False: the host has no memory. */
bool bfc_block_attributes_set_handle(uint64_t id, const void *owner, CUipcMemHandle *handle);

/* Removes and returns what is stored for a block that was freed; false: nothing was. */
bool bfc_block_attributes_take(uint64_t id, struct bfc_block_attributes *attributes);

/* Removes and returns what is stored for any one block of an arena that has ended; false: nothing
 * is stored for the arena's blocks any more. */
bool bfc_block_attributes_take_of(const void *owner, struct bfc_block_attributes *attributes);

#endif

/*
 * Host memory for the pool's own records: arrays that grow in place.
 *
 * An array is a range of addresses, reserved once and backed by memory from its front as it grows,
 * so that elements never move, growing never copies, and an index identifies an element. Bytes that
 * were never touched, and bytes that were given back, take no memory and read as zero.
 *
 * Not thread-safe: the pool's lock guards each array. Apart from locks and sleeping, this is all
 * that the pool needs from the operating system.
 */
#ifndef BFC_POOL_HOST_H
#define BFC_POOL_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct host_array {
    unsigned char *base;
    uint64_t reserved;  /* bytes of addresses that are reserved */
    uint64_t committed; /* bytes from the front that may be read and written */
};

/* Reserves addresses for `bytes` bytes, and makes the first `usable` of them readable and writable.
 * Returns the array's start; NULL: the host has no addresses or no memory. */
void *host_array_open(struct host_array *array, uint64_t bytes, uint64_t usable);

/* Gives all addresses and memory of the array back. */
void host_array_drop(struct host_array *array);

/* Makes at least the first `bytes` bytes usable. False: the host has no memory, or the array has
 * fewer reserved addresses. */
bool host_array_commit_slowly(struct host_array *array, uint64_t bytes);

static inline bool host_array_commit(struct host_array *array, uint64_t bytes) {
    return LIKELY(bytes <= array->committed) || host_array_commit_slowly(array, bytes);
}

/* Gives back the memory of all bytes from `bytes` on. They stay usable, and read as zero. */
void host_array_give_back(struct host_array *array, uint64_t bytes);

#endif

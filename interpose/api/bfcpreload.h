/*
 * bfcpreload's interface for programs that inspect their device memory, or choose where blocks lie.
 *
 * A program needs no library for it and also runs without bfcpreload. It looks the functions up by
 * name, with dlsym(RTLD_DEFAULT, "bfc_stats") or ctypes.CDLL(None). Or it defines BFCPRELOAD_WEAK
 * before it includes this header, and calls a function only if that exists: if (bfc_stats) ...
 *
 * Structs grow at their ends only. The caller passes the size of its own struct; the library leaves
 * out fields beyond that size, and sets fields to zero that it does not know. bfc_interface tells
 * which functions exist: its result rises by one when functions are added. Sizes and addresses are
 * in bytes.
 *
 * Functions may be called from any thread. They return 0 or a count; a negative number is one of
 * enum bfcpreload_error. None of them is async-signal-safe.
 */
#ifndef BFCPRELOAD_H
#define BFCPRELOAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BFCPRELOAD_INTERFACE 2

#ifdef BFCPRELOAD_WEAK
#define BFCPRELOAD_FUNCTION __attribute__((weak, visibility("default")))
#else
#define BFCPRELOAD_FUNCTION __attribute__((visibility("default")))
#endif

enum bfcpreload_error {
    BFCPRELOAD_NOT_POOLED = -1,    /* the address is in none of the pools */
    BFCPRELOAD_NO_CONTEXT = -2,    /* no CUDA context is current, or it has no pool */
    BFCPRELOAD_OUT_OF_MEMORY = -3, /* the device, or the host, has no memory */
    BFCPRELOAD_BAD_ARGUMENT = -4,  /* an argument is a null pointer, or a size of zero */
    BFCPRELOAD_IN_GROUP = -5,      /* this thread has begun a group already, or has none to end */
    BFCPRELOAD_NO_TAG = -6,        /* every tag that this thread has pushed was popped already */
};

struct bfcpreload_block {
    uint64_t start, size; /* `size` is as the pool rounded it up */
    uint64_t requested;   /* bytes that the program asked for; 0: the block is free */
    uint64_t free_before; /* free bytes just before the block, in its region */
    uint64_t free_after;  /* free bytes just after the block, in its region */
    /* the region that has the block: memory that the pool took from the device in one piece */
    uint64_t region_start;
    uint64_t region_size;
    uint64_t id; /* unique among all blocks of the process; 0: the block is free */
    int32_t device;
    int32_t state; /* 0: in use; 1: free; 2: free, but work under way may still use it */
};

struct bfcpreload_stats {
    uint64_t reserved;  /* bytes taken from the device: in_use + ready + pending + deferred */
    uint64_t in_use;    /* bytes of the blocks that the program holds, padding included */
    uint64_t requested; /* bytes that the program asked for, without padding */
    uint64_t ready;     /* bytes that are free, and safe to hand out at once */
    uint64_t pending;   /* bytes that are free, but that work under way may still use */
    uint64_t deferred;  /* bytes that were freed during a stream capture, not reusable yet */
    uint64_t largest_free;
    uint64_t regions, blocks; /* numbers of regions and of blocks */
    uint64_t peak_reserved, peak_in_use, peak_requested;
    /* The following are counts since the pools began. */
    uint64_t allocations, frees, hits, misses;
    uint64_t reserve_calls, refusals, release_calls;
    uint64_t retries, out_of_memory;
};

/* Returns the library's value of BFCPRELOAD_INTERFACE. */
BFCPRELOAD_FUNCTION unsigned bfc_interface(void);

/* Describes the block, in use or free, that holds `address`. `size`: sizeof *block. */
BFCPRELOAD_FUNCTION int bfc_block_info(const void *address, struct bfcpreload_block *block,
                                       size_t size);

/* Sums up the pools of a device (-1: of all devices). `size`: sizeof *stats. */
BFCPRELOAD_FUNCTION int bfc_stats(int device, struct bfcpreload_stats *stats, size_t size);

/* Gives wholly free regions back to the device until `bytes` were given back (SIZE_MAX: all such
 * regions). Returns how many bytes were given back. */
BFCPRELOAD_FUNCTION size_t bfc_trim(size_t bytes);

/* Lists all blocks of a device (-1: of all devices), each pool's in address order. Writes at most
 * `most` (`blocks` may be NULL if that is 0), each `size` bytes long. Returns how many blocks there
 * are: other threads may change that from one call to the next. Holds each pool's lock while it
 * walks the pool. */
BFCPRELOAD_FUNCTION long bfc_snapshot(int device, struct bfcpreload_block *blocks, size_t most,
                                      size_t size);

/* From now until bfc_group_end, the blocks that this thread allocates in the current context lie
 * next to each other, in the order of the calls, in one range of `bytes` that is allocated now.
 * Each block is freed on its own. In the range, sizes are rounded up to multiples of 512 bytes, and
 * blocks whose size is then a multiple of 64 KiB, or at least 1 MiB, start at multiples of 64 KiB:
 * `bytes` should be enough for that. An allocation for which the range has no room is served like
 * any other. bfc_group_end gives back what is left. */
BFCPRELOAD_FUNCTION int bfc_group_begin(size_t bytes);
BFCPRELOAD_FUNCTION int bfc_group_end(void);

/* Exists if bfc_interface() is 2 or more. What this thread allocates until the matching bfc_tag_pop
 * is tagged `name`, within the tags that the thread has pushed before; bfcstat who --by=tag sums up
 * by tag. The first 63 bytes of `name` are copied. bfc_tag_push returns how many tags the thread
 * had. */
BFCPRELOAD_FUNCTION int bfc_tag_push(const char *name);
BFCPRELOAD_FUNCTION int bfc_tag_pop(void);

#ifdef __cplusplus
}
#endif

#endif

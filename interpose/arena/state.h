/* The struct of an arena: one pool of one context, with all that belongs to it. */
#ifndef BFC_INTERPOSE_STATE_H
#define BFC_INTERPOSE_STATE_H

#include "interpose/driver/driver.h"
#include "interpose/stats/events.h"
#include "interpose/table/feature.h"
#include "layout/segment.h"
#include "pool/pool.h"

/* The memory that an arena's pool takes its regions from. The calls are made in its context. */
struct bfc_memory_source {
    bool is_host; /* whether it is host memory that the device reaches */
    /* whether `give` may wait long, so that only threads of the library call it */
    bool gives_in_background;
    const char *over_limit; /* what the log says when an allocation would exceed the limit */
    /* Allocates a region; `is_first` means what it means in struct bfc_ask. Returns CUDA_SUCCESS,
     * CUDA_ERROR_OUT_OF_MEMORY or another error of the driver's. On an error `why` says what is in
     * the way. */
    CUresult (*take)(const struct bfc_driver *driver, const struct bfc_arena *arena, uint64_t bytes,
                     bool is_first, CUdeviceptr *pointer, const char **why);
    CUresult (*give)(const struct bfc_driver *driver, CUdeviceptr start);
};

/* Chooses the places of blocks before the pool's own search does. */
struct bfc_placer {
    /* Arguments and results are those of bfc_pool_allocate. */
    enum bfc_status (*allocate)(struct bfc_arena *arena, uint64_t bytes, unsigned flags,
                                struct bfc_block_info *block);
    /* Hands out a block if its place is known at once and is ready. False: there is no such place,
     * and nothing has changed. */
    bool (*take)(struct bfc_arena *arena, uint64_t bytes, struct bfc_block_info *block);
};

/* A device; the record lives as long as the process. */
struct bfc_device {
    CUdevice ordinal;
    uint64_t reserved; /* atomic: bytes that all its arenas' pools have reserved */
    struct bfc_device *next;
};

struct bfc_arena {
    struct bfc_pool *pool;
    struct bfc_fences *fences; /* NULL: the driver cannot record fences, so frees wait */
    struct bfc_stream_frees *stream_frees; /* frees in the order of streams */
    /* how this arena frees (enum bfc_free_mode); `sync` where the driver allows no other mode */
    int free_mode;
    int fatal; /* atomic: an error (CUresult) after which the context answers nothing else, or 0 */
    bool has_deferred; /* atomic: blocks may be deferred */
    unsigned fencers;  /* atomic: threads that are giving deferred blocks a fence */
    /* atomic: memory that was allocated so that its free waits, but that the driver did not free;
     * 0: none */
    CUdeviceptr spare_page;
    bfc_fence lazy_until; /* atomic: no pending block is handed out before this fence is complete */
    uint64_t waited_for;  /* atomic: the sum of submissions (submission.h) before the last wait for
                             all work of the context; UINT64_MAX: none, or not known */
    const struct bfc_memory_source *source; /* where the pool's regions come from; never changes */
    struct bfc_arena *home; /* for an arena of host memory: the arena of its context's device
                               memory, with a reference; NULL: this arena has device memory */
    CUcontext context;
    unsigned long long
        id; /* from cuCtxGetId; where the driver lacks it, a number that the library chose */
    CUdevice device;
    /* the record of the device; for an arena of host memory: that of BFC_DEVICE_HOST */
    struct bfc_device *on;
    /* whether the pool takes addresses and memory separately (pool/pages.h); constant */
    bool has_pages;
    uint64_t reserved; /* atomic: the arena's share of on->reserved */
    bool shown;        /* atomic: whether memory of its pool was shown to others (sharing.h) */
    /* atomic: whether others, such as a network card, may use its memory by an address that the
     * library cannot change: it was exported as a range, or registered */
    bool registered;
    bool ended;            /* atomic: whether its context has ended */
    unsigned visitors;     /* atomic: threads between bfc_arena_enter and bfc_arena_leave */
    unsigned closers;      /* atomic: threads that are about to end its context */
    unsigned references;   /* atomic: number of references to the arena */
    uint64_t device_total; /* bytes of memory that the device has */
    uint64_t limit; /* most bytes that all pools on the device may reserve; UINT64_MAX: no limit */
    uint64_t left_to_others; /* bytes that the device must still have when the pool has grown */
    uint64_t pending_budget; /* BFC_PENDING_BUDGET */
    uint64_t bypass_above;   /* larger requests go to the driver, in bytes */
    /* Requests of up to plain_most (atomic) bytes need no check before they are put to the pool. It
     * is 0 after a fatal error and while there is a placer, else plain_limit (constant): 0 in mode
     * ordered, unless no block is pending (bfc_arena_let_plain), else the largest request that the
     * device and bypass_above allow. */
    uint64_t plain_most, plain_limit;
    const struct bfc_placer *placer; /* atomic; NULL: allocations ask the pool alone */
    /* the states that features keep for this arena (struct bfc_feature) */
    void *features[BFC_FEATURE_SLOTS];
    struct bfc_stats_sink stats;
    /* the counters, while the segment has no section for the arena */
    struct bfc_segment_pool own_section;
    uint64_t sequence;      /* a number that rises with each arena that is published */
    struct bfc_arena *next; /* the next older arena in the table */
};

#endif

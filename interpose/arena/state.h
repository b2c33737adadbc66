/* The struct of an arena, the memory pool of one CUDA context. */
#ifndef BFC_INTERPOSE_STATE_H
#define BFC_INTERPOSE_STATE_H

#include "interpose/driver/driver.h"
#include "interpose/stats/events.h"
#include "interpose/table/feature.h"
#include "layout/segment.h"
#include "pool/pool.h"

/* What an arena's pool takes its regions from: device memory or host memory. Both functions are
 * called with the arena's context current. */
struct bfc_memory_source {
    bool is_host; /* whether the regions are host memory that the device can access */
    /* whether `give` may wait for the device, so that only the library's own threads may call it */
    bool gives_in_background;
    const char *over_limit; /* the reason to log if the limit on this memory would be exceeded */
    /* Allocates a region. Other jobs that wait for memory (BFC_WAIT) come first, unless `is_first`.
     * Returns CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY or another error of the driver's. On an error
     * `why` is set to the reason, for the log. */
    CUresult (*take)(const struct bfc_driver *driver, const struct bfc_arena *arena, uint64_t bytes,
                     bool is_first, CUdeviceptr *pointer, const char **why);
    CUresult (*give)(const struct bfc_driver *driver, CUdeviceptr start);
};

/* Chooses the addresses of blocks by a plan (BFC_PLAN). It is asked before the pool searches. */
struct bfc_placer {
    /* Arguments and results are those of bfc_pool_allocate. */
    enum bfc_status (*allocate)(struct bfc_arena *arena, uint64_t bytes, unsigned flags,
                                struct bfc_block_info *block);
    /* Hands out a block at its planned address, if the plan expects this allocation next and the
     * address is free. Otherwise returns false, and nothing has changed. */
    bool (*take)(struct bfc_arena *arena, uint64_t bytes, struct bfc_block_info *block);
};

/* A device of which the process has memory. The record lives as long as the process. */
struct bfc_device {
    CUdevice ordinal;
    uint64_t reserved; /* atomic: bytes that all pools on this device have reserved */
    struct bfc_device *next;
};

struct bfc_arena {
    struct bfc_pool *pool;
    struct bfc_fences *fences; /* NULL: the driver cannot record fences, so frees wait */
    struct bfc_stream_frees *stream_frees; /* incomplete frees by cuMemFreeAsync */
    /* enum bfc_free_mode (BFC_FREE); `sync` where the driver allows no other mode */
    int free_mode;
    int fatal; /* atomic: the CUresult after which all driver calls in the context fail, or 0 */
    bool has_deferred; /* atomic: whether blocks may be deferred (free, without a fence) */
    unsigned fencers;  /* atomic: number of threads that are giving deferred blocks a fence */
    /* atomic: 2 MiB that the driver has refused to free, kept for bfc_upstream_wait_as_free, which
     * frees memory in order to wait for the context's work; 0: none */
    CUdeviceptr spare_page;
    bfc_fence lazy_until; /* atomic: until this fence is complete, no pending block is handed out */
    /* atomic: how many submissions (submission.h) had been made when the host last waited for all
     * work of the context; UINT64_MAX: it is not known that it ever did */
    uint64_t waited_for;
    const struct bfc_memory_source *source; /* where the pool's regions come from; constant */
    /* of an arena of host memory: the same context's arena of device memory, with a reference;
     * NULL: this is an arena of device memory */
    struct bfc_arena *home;
    CUcontext context;
    unsigned long long
        id; /* the context's id from cuCtxGetId; without that call, the library chooses a number */
    CUdevice device;
    /* the device's record; an arena of host memory has that of BFC_DEVICE_HOST */
    struct bfc_device *on;
    bool has_pages;    /* whether the pool's memory is mapped in pages (pool/pages.h); constant */
    uint64_t reserved; /* atomic: bytes that this arena has reserved; a part of on->reserved */
    bool shown; /* atomic: whether a block of the pool was exported or registered (sharing.h) */
    /* atomic: whether others, such as a network card, may use the pool's memory by an address that
     * the library cannot change: it was exported as a range, or registered */
    bool registered;
    bool ended;          /* atomic: whether the arena's context has ended */
    unsigned visitors;   /* atomic: number of threads between bfc_arena_enter and bfc_arena_leave */
    unsigned closers;    /* atomic: number of threads that are about to end the arena's context */
    unsigned references; /* atomic: number of references to the arena */
    uint64_t device_total; /* bytes of memory that the device has */
    uint64_t limit; /* most bytes that all pools on the device may reserve; UINT64_MAX: no limit */
    uint64_t left_to_others; /* bytes to leave free on the device (BFC_RESERVE), or 0 */
    uint64_t pending_budget; /* most deferred bytes before a free waits (BFC_PENDING_BUDGET) */
    uint64_t bypass_above;   /* requests of more bytes go to the driver (BFC_BYPASS_ABOVE) */
    /* Requests of up to plain_most (atomic) bytes go to the pool without further checks. plain_most
     * is 0 after a fatal error and while the arena follows a plan, otherwise plain_limit
     * (constant): the largest request that the device and bypass_above allow, or in mode ordered 0.
     * In that mode bfc_arena_let_plain raises plain_most while no block is pending. */
    uint64_t plain_most, plain_limit;
    const struct bfc_placer *placer; /* atomic; NULL: no plan (BFC_PLAN) is followed */
    /* data of optional features for this arena; each struct bfc_feature has an index here */
    void *features[BFC_FEATURE_SLOTS];
    struct bfc_stats_sink stats;
    /* the pool's counters, while the shared-memory segment has no section for them */
    struct bfc_segment_pool own_section;
    uint64_t sequence;      /* the arena's number in the order in which arenas were published */
    struct bfc_arena *next; /* in the list of living arenas: the next older one */
};

#endif

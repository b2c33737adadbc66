/* What an arena is made of: one pool of one context, with all that belongs to it. */
#ifndef BFC_INTERPOSE_STATE_H
#define BFC_INTERPOSE_STATE_H

#include "interpose/driver/driver.h"
#include "interpose/stats/events.h"
#include "interpose/table/feature.h"
#include "layout/segment.h"
#include "pool/pool.h"

/* Where regions come from, and go back to: for the pool's upstream, in the arena's context. */
struct bfc_memory_source {
    bool is_host;             /* memory of the host, that the device reaches */
    bool gives_in_background; /* giving back may wait long: only a thread of ours does it */
    const char *over_limit;   /* what is said when its limit would be exceeded */
    /* CUDA_ERROR_OUT_OF_MEMORY, and `why` says what is in the way, or another error of the
     * driver's. */
    CUresult (*take)(const struct bfc_driver *driver, const struct bfc_arena *arena, uint64_t bytes,
                     bool is_first, CUdeviceptr *pointer, const char **why);
    CUresult (*give)(const struct bfc_driver *driver, CUdeviceptr start);
};

/* Decides where blocks go, in place of the pool's own search. */
struct bfc_placer {
    /* As bfc_pool_allocate. */
    enum bfc_status (*allocate)(struct bfc_arena *arena, uint64_t bytes, unsigned flags,
                                struct bfc_block_info *block);
    /* Only if it has a place that is ready, at once; false: not so, and nothing has changed. */
    bool (*take)(struct bfc_arena *arena, uint64_t bytes, struct bfc_block_info *block);
};

/* A device, for as long as the process lives. */
struct bfc_device {
    CUdevice ordinal;
    uint64_t reserved; /* atomic: bytes that all its arenas' pools have reserved */
    struct bfc_device *next;
};

struct bfc_arena {
    struct bfc_pool *pool;
    struct bfc_fences *fences; /* NULL: the driver cannot record fences, and frees wait */
    struct bfc_stream_frees *stream_frees; /* frees in the order of streams */
    int free_mode;                         /* enum bfc_free_mode, as the driver allows */
    int fatal;         /* atomic: a CUresult after which the context answers nothing else, or 0 */
    bool has_deferred; /* atomic: blocks may be deferred */
    unsigned fencers;  /* atomic: threads that give deferred blocks a fence */
    CUdeviceptr spare_page; /* atomic: of a wait (upstream.c) whose free was refused; 0: none */
    bfc_fence lazy_until;   /* atomic: until it is complete no pending block is handed out */
    const struct bfc_memory_source *source; /* where its pool's regions come from; constant */
    struct bfc_arena *home; /* of an arena of host memory: its context's own, with a reference;
                               NULL: it hands out device memory */
    CUcontext context;
    unsigned long long id; /* cuCtxGetId's; where the driver lacks it, a number of ours */
    CUdevice device;
    struct bfc_device *on; /* the same; of host memory: what stands for the host */
    bool has_pages;        /* its pool's addresses and memory are apart (pool/pages.h); constant */
    uint64_t reserved;     /* atomic: its part of that one's, in bytes */
    bool ended;            /* atomic: its context has ended */
    unsigned visitors;     /* atomic: threads between bfc_arena_enter and bfc_arena_leave */
    unsigned closers;      /* atomic: threads that are about to end its context */
    unsigned references;   /* atomic: the table's, and the threads' */
    uint64_t device_total; /* bytes */
    uint64_t limit; /* most that all pools on the same may reserve, in bytes; UINT64_MAX: none */
    uint64_t left_to_others; /* bytes that the device must still have when the pool has grown */
    uint64_t pending_budget; /* BFC_PENDING_BUDGET */
    uint64_t bypass_above;   /* larger requests go to the driver, in bytes */
    /*
     * Atomic: requests up to it may be put to the pool without another look: 0 after a fatal error,
     * in mode ordered, and while there is a placer; else plain_limit, which is what neither the
     * device nor bypass_above rule out, and constant.
     */
    uint64_t plain_most, plain_limit;
    const struct bfc_placer *placer;   /* atomic: who is asked in the pool's place; NULL: nobody */
    void *features[BFC_FEATURE_SLOTS]; /* their own state (struct bfc_feature) */
    struct bfc_stats_sink stats;
    struct bfc_segment_pool own_section; /* where it counts without a segment */
    uint64_t sequence;                   /* rises from each arena to the next one */
    struct bfc_arena *next;              /* in the table of living arenas: the one before it */
};

#endif

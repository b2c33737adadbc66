/* What an arena is made of: one pool of one context, with all that belongs to it. */
#ifndef BFC_INTERPOSE_STATE_H
#define BFC_INTERPOSE_STATE_H

#include "interpose/driver/driver.h"
#include "interpose/stats/events.h"
#include "layout/segment.h"
#include "pool/pool.h"

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
    bool frees_in_streams; /* atomic: blocks were ever freed so; then a double one may not wait */
    int free_mode;         /* enum bfc_free_mode, as the driver allows */
    int fatal;         /* atomic: a CUresult after which the context answers nothing else, or 0 */
    bool has_deferred; /* atomic: blocks may be deferred */
    unsigned fencers;  /* atomic: threads that give deferred blocks a fence */
    CUdeviceptr spare_page; /* atomic: of a wait (upstream.c) whose free was refused; 0: none */
    bfc_fence lazy_until;   /* atomic: until it is complete no pending block is handed out */
    struct bfc_arena *home; /* of an arena of host memory (spill.h): its context's own, with a
                               reference; NULL: it hands out device memory */
    /* Makes one of host memory for this one, which nobody else knows yet; NULL: not possible. */
    struct bfc_arena *(*make_host)(const struct bfc_driver *driver, struct bfc_arena *home);
    CUcontext context;
    unsigned long long id; /* cuCtxGetId's; where the driver lacks it, a number of ours */
    CUdevice device;
    struct bfc_device *on; /* the same; of host memory: what stands for the host */
    struct bfc_paging {
        uint64_t
            granule; /* least bytes of a page; 0: regions, no pages (interpose/features/pages/) */
        CUmemAllocationProp properties; /* of each page */
    } paging;                           /* constant once the pool was made */
    uint64_t
        untold_pages;  /* bytes made in the step under way, not told of yet; of the turn's holder */
    uint64_t reserved; /* atomic: its part of that one's, in bytes */
    bool ended;        /* atomic: its context has ended */
    unsigned visitors; /* atomic: threads between bfc_arena_enter and bfc_arena_leave */
    unsigned closers;  /* atomic: threads that are about to end its context */
    unsigned references;   /* atomic: the table's, and the threads' */
    uint64_t device_total; /* bytes */
    uint64_t limit; /* most that all pools on the same may reserve, in bytes; UINT64_MAX: none */
    uint64_t left_to_others; /* bytes that the device must still have when the pool has grown */
    uint64_t pending_budget; /* BFC_PENDING_BUDGET */
    uint64_t bypass_above;   /* larger requests go to the driver, in bytes */
    /*
     * Atomic: requests up to it may be put to the pool without another look: 0 after a fatal error,
     * in mode ordered, and while a plan is followed; else what neither the device nor bypass_above
     * rule out.
     */
    uint64_t plain_most;
    uint64_t plain_without_plan; /* what it is when no plan is followed; constant */
    struct bfc_follower
        *follower; /* atomic: of the plan that it follows (interpose/features/plan/) */
    struct bfc_follower *followers; /* of all plans that it ever followed; with the arena they go */
    void (*forget_plans)(struct bfc_arena *arena); /* frees them; NULL: there are none */
    struct bfc_stats_sink stats;
    struct bfc_segment_pool own_section; /* where it counts without a segment */
    uint64_t sequence;                   /* rises from each arena to the next one */
    struct bfc_arena *next;              /* in the table of living arenas: the one before it */
};

#endif

/*
 * Domains: one for each CUDA context in which this process allocates, with its pool.
 *
 * A context is known by its handle and, where the driver has cuCtxGetId, by its id, which is never
 * used again. A domain ends with its context: its regions are forgotten, not freed. Its struct
 * lives on until no thread refers to it: a thread keeps a reference to the one that it used last,
 * so that the usual call touches no counter.
 */
#ifndef BFC_INTERPOSE_DOMAIN_H
#define BFC_INTERPOSE_DOMAIN_H

#include "interpose/driver.h"
#include "interpose/process.h"
#include "interpose/segment_layout.h"
#include "pool/pool.h"

struct bfc_domain {
    struct bfc_pool *pool;
    CUcontext context;
    unsigned long long id; /* cuCtxGetId's; where the driver lacks it, a number of ours */
    CUdevice device;
    bool primary;
    bool ended;            /* atomic: its context has ended */
    unsigned references;   /* atomic: the table's, and the threads' */
    uint64_t device_total; /* bytes */
    uint64_t limit;        /* most that the pool may reserve, in bytes; UINT64_MAX: no limit */
    struct bfc_segment_pool *section; /* where it counts; own_section without a segment */
    struct bfc_segment_pool own_section;
    struct bfc_domain *next; /* in the table of living domains */
};

/*
 * The domain of the calling thread's current context, made now if it is new. NULL when there is no
 * current context, or no pool could be had for it; `reason` says why. Valid until the thread's
 * next call here or of bfc_domain_of.
 */
struct bfc_domain *bfc_current_domain(const struct bfc_driver *driver,
                                      enum bfc_forward_reason *reason);

/* The domain whose regions hold `address`, or NULL: not ours. Valid as above. */
struct bfc_domain *bfc_domain_of(CUdeviceptr address);

/* Each calls `real`, and forgets the domain of the context that it has ended, if it has. */
CUresult bfc_context_destroy(CUcontext context, CUresult (*real)(CUcontext));
CUresult bfc_primary_reset(CUdevice device, CUresult (*real)(CUdevice));
CUresult bfc_primary_release(const struct bfc_driver *driver, CUdevice device,
                             CUresult (*real)(CUdevice));

/*
 * Why the pool's source last failed in this thread: the driver's own answer; CUDA_SUCCESS if the
 * pool refused without asking.
 */
CUresult bfc_last_source_error(void);
void bfc_clear_source_error(void);

#endif

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
#include "interpose/region_map.h"
#include "interpose/segment_layout.h"
#include "pool/pool.h"

struct bfc_domain {
    struct bfc_pool *pool;
    struct bfc_marks *marks; /* NULL: the driver cannot mark, and frees wait */
    int free_mode;           /* enum bfc_free_mode, as the driver allows */
    int fatal;           /* atomic: a CUresult after which the context answers nothing else, or 0 */
    bool has_limbo;      /* atomic: blocks may be in limbo */
    bfc_mark lazy_until; /* atomic: until it is complete no dirty block is handed out */
    CUcontext context;
    unsigned long long id; /* cuCtxGetId's; where the driver lacks it, a number of ours */
    CUdevice device;
    bool ended;              /* atomic: its context has ended */
    unsigned references;     /* atomic: the table's, and the threads' */
    uint64_t device_total;   /* bytes */
    uint64_t limit;          /* most that the pool may reserve, in bytes; UINT64_MAX: no limit */
    uint64_t left_to_others; /* bytes that the device must still have when the pool has grown */
    uint64_t bypass_above;   /* larger requests go to the driver, in bytes */
    /*
     * Atomic: requests up to it may be put to the pool without another look: 0 after a fatal error,
     * and in mode ordered; else what neither the device nor bypass_above rule out.
     */
    uint64_t plain_most;
    struct bfc_segment_pool *section; /* where it counts; own_section without a segment */
    struct bfc_segment_pool own_section;
    struct bfc_segment_header *segment; /* in which its section is, or NULL */
    unsigned section_index;
    uint64_t event_pool;     /* the index, as bfc_event_what places it */
    struct bfc_domain *next; /* in the table of living domains */
};

/* What the calling thread used last, with a reference held; for the functions below. */
struct bfc_thread_domain {
    struct bfc_domain *domain;
    bool releases_at_exit;
};
extern __thread struct bfc_thread_domain bfc_thread_domain
    __attribute__((tls_model("initial-exec")));

struct bfc_domain *bfc_domain_switch(const struct bfc_driver *driver, CUcontext context,
                                     unsigned long long id, enum bfc_forward_reason *reason);
struct bfc_domain *bfc_domain_take(struct bfc_domain *owner);

/*
 * The domain of the calling thread's current context, made now if it is new. NULL when there is no
 * current context, or no pool could be had for it; `reason` says why. Valid until the thread's
 * next call here or of bfc_domain_of.
 */
static inline struct bfc_domain *bfc_current_domain(const struct bfc_driver *driver,
                                                    enum bfc_forward_reason *reason) {
    CUcontext context = NULL;
    unsigned long long id = 0;
    *reason = BFC_FORWARD_NO_CONTEXT;
    if (driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context ||
        (driver->cuCtxGetId && driver->cuCtxGetId(context, &id) != CUDA_SUCCESS))
        return NULL;
    struct bfc_domain *domain = bfc_thread_domain.domain;
    if (__builtin_expect(domain && domain->context == context && (!id || domain->id == id) &&
                             !__atomic_load_n(&domain->ended, __ATOMIC_ACQUIRE),
                         1))
        return domain;
    return bfc_domain_switch(driver, context, id, reason);
}

static inline uint64_t bfc_domain_plain_most(const struct bfc_domain *domain) {
    return __atomic_load_n(&domain->plain_most, __ATOMIC_RELAXED);
}

/*
 * The same, if it is the one that this thread used last and its id is `id`, which is not 0; else
 * NULL, and nothing has changed. bfc_domain_again_of: and if `address` lies in its regions.
 * bfc_domain_now: the id of the one that this thread used last, if its context is current; else 0.
 * bfc_domain_was: whether `id` is that of the one that this thread used last, current or not.
 */
struct bfc_domain *bfc_domain_again(const struct bfc_driver *driver, unsigned long long id);
struct bfc_domain *bfc_domain_again_of(const struct bfc_driver *driver, unsigned long long id,
                                       CUdeviceptr address);
unsigned long long bfc_domain_now(const struct bfc_driver *driver);
bool bfc_domain_was(unsigned long long id);

/* The domain whose regions hold `address`, or NULL: not ours. Valid as above. */
static inline struct bfc_domain *bfc_domain_of(CUdeviceptr address) {
    struct bfc_domain *owner = bfc_region_owner(address);
    return __builtin_expect(owner == bfc_thread_domain.domain || !owner, 1)
               ? owner
               : bfc_domain_take(owner);
}

/* The living domain of a context, or the `index`th of all, with a reference to drop; NULL: none. */
struct bfc_domain *bfc_domain_of_context(CUcontext context);
struct bfc_domain *bfc_domain_at(unsigned index);
void bfc_domain_drop(struct bfc_domain *domain);

/* One more reference, to drop. */
void bfc_domain_keep(struct bfc_domain *domain);

/* Forgets the domain of a context that has ended, if it is this one. */
void bfc_domain_end(CUcontext context, unsigned long long id);

/* The device's primary context, or NULL when it is not active. */
CUcontext bfc_primary_context(const struct bfc_driver *driver, CUdevice device);

#endif

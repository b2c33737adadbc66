/* The three modes of free. */
#include "interpose/reuse.h"

#include <time.h>

#include "interpose/capture.h"
#include "interpose/clock.h"
#include "interpose/marks.h"
#include "interpose/observe.h"
#include "interpose/peers.h"
#include "interpose/unsafe.h"

/* ---- errors ---- */

/* Errors after which the context answers nothing else. */
static bool is_fatal(CUresult result) {
    switch ((int)result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

static __attribute__((noinline)) void latch_fatal(struct bfc_domain *domain, CUresult result) {
    if (!is_fatal(result))
        return;
    __atomic_store_n(&domain->fatal, (int)result, __ATOMIC_RELAXED);
    __atomic_store_n(&domain->plain_most, 0, __ATOMIC_RELAXED);
}

static inline CUresult latch(struct bfc_domain *domain, CUresult result) {
    if (__builtin_expect(result != CUDA_SUCCESS, 0))
        latch_fatal(domain, result);
    return result;
}

/* ---- waiting on the host ---- */

/* Of a lane's waits so many are timed at first, then one in so many, which stands for all of them.
 */
enum { TIMED_WAITS = 64 };

static __attribute__((noinline)) CUresult
synchronize_timed(const struct bfc_driver *driver, struct bfc_domain *domain, uint64_t weight) {
    uint64_t before = bfc_now_ns();
    CUresult result = driver->cuCtxSynchronize();
    __atomic_fetch_add(&domain->section->host_wait_ns, weight * (bfc_now_ns() - before),
                       __ATOMIC_RELAXED);
    return result;
}

/* Waits for the current context, and counts it. */
static inline CUresult synchronize_current(const struct bfc_driver *driver,
                                           struct bfc_domain *domain) {
    CUresult result;
    uint64_t waits = bfc_observe_wait(domain);
    if (__builtin_expect(waits < TIMED_WAITS || waits % TIMED_WAITS == 0, 0))
        result = synchronize_timed(driver, domain, waits < TIMED_WAITS ? 1 : TIMED_WAITS);
    else
        result = driver->cuCtxSynchronize();
    return latch(domain, result);
}

static __attribute__((noinline)) CUresult
synchronize_other(const struct bfc_driver *driver, struct bfc_domain *domain, CUcontext context) {
    CUresult result = driver->cuCtxPushCurrent_v2(context);
    if (result != CUDA_SUCCESS)
        return result;
    result = synchronize_current(driver, domain);
    CUresult popped = bfc_pop_context(driver);
    return result != CUDA_SUCCESS ? result : popped;
}

/* Waits for all work of a context, whichever one is the thread's current one. */
static inline CUresult synchronize(const struct bfc_driver *driver, struct bfc_domain *domain,
                                   CUcontext context) {
    CUcontext current = NULL;
    CUresult result = driver->cuCtxGetCurrent(&current);
    if (__builtin_expect(result == CUDA_SUCCESS && current == context, 1))
        return synchronize_current(driver, domain);
    return result != CUDA_SUCCESS ? result : synchronize_other(driver, domain, context);
}

/* ---- marking ---- */

/* Contexts that one mark can cover: the owner and its peers. */
enum { MARK_CONTEXTS = BFC_PEERS_MOST + 1 };

static void raise_to(bfc_mark *field, bfc_mark mark) {
    bfc_mark before = __atomic_load_n(field, __ATOMIC_SEQ_CST);
    while (before < mark && !__atomic_compare_exchange_n(field, &before, mark, false,
                                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/*
 * Marks this moment in `contexts`. A mark over more than the owner's context, or later than its
 * free, holds ordered reuse back until it is complete: `lazy_until`.
 */
static inline CUresult record(const struct bfc_driver *driver, struct bfc_domain *domain,
                              const CUcontext *contexts, size_t count, bool late, bfc_mark *mark) {
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    CUresult result = bfc_marks_record(domain->marks, driver, contexts, count, mark);
    bfc_capture_restore(driver, mode);
    if (result == CUDA_SUCCESS && (late || count > 1 || contexts[0] != domain->context))
        raise_to(&domain->lazy_until, *mark);
    return latch(domain, result);
}

/* The block's own context, if `owner`, and those with access to its memory. */
static size_t contexts_of(struct bfc_domain *domain, bool owner,
                          CUcontext contexts[MARK_CONTEXTS]) {
    size_t count = 0;
    if (owner)
        contexts[count++] = domain->context;
    BFC_WITHOUT_PEERS(return count;)
    return count + bfc_peers_of(domain->context, contexts + count);
}

/* Only with marks: without them a free waits, whatever captures. */
static CUresult put_in_limbo(struct bfc_domain *domain, CUdeviceptr pointer) {
    if (bfc_pool_free(domain->pool, pointer, BFC_LIMBO_MARK) != BFC_OK)
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_store_n(&domain->has_limbo, true, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

/*
 * Gives what is in limbo a mark, if nothing captures. What came there before the mark was recorded
 * had done its work by then: the mark covers it. What comes meanwhile stays for the next time.
 */
static void mark_limbo(const struct bfc_driver *driver, struct bfc_domain *domain) {
    CUcontext contexts[MARK_CONTEXTS];
    bfc_mark mark;
    if (!__atomic_load_n(&domain->has_limbo, __ATOMIC_SEQ_CST) || !bfc_gate_enter())
        return;
    __atomic_store_n(&domain->has_limbo, false, __ATOMIC_SEQ_CST);
    size_t count = contexts_of(domain, true, contexts);
    uint64_t arrivals = bfc_pool_limbo_arrivals(domain->pool);
    if (record(driver, domain, contexts, count, true, &mark) == CUDA_SUCCESS)
        bfc_pool_mark_limbo(domain->pool, mark, arrivals);
    else
        __atomic_store_n(&domain->has_limbo, true, __ATOMIC_SEQ_CST);
    bfc_gate_leave();
}

void bfc_reuse_after_captures(const struct bfc_driver *driver) {
    struct bfc_domain *domain;
    for (unsigned i = 0; (domain = bfc_domain_at(i)); i++) {
        mark_limbo(driver, domain);
        bfc_domain_drop(domain);
    }
}

/* ---- the pool's questions ---- */

bfc_mark bfc_reuse_poll(void *context) {
    struct bfc_domain *domain = context;
    const struct bfc_driver *driver = bfc_driver();
    mark_limbo(driver, domain);
    return domain->marks ? bfc_marks_poll(domain->marks, driver) : BFC_NO_MARK;
}

bfc_mark bfc_reuse_wait(void *context, bfc_mark mark, uint64_t timeout_ns) {
    struct bfc_domain *domain = context;
    const struct bfc_driver *driver = bfc_driver();
    CUresult error = CUDA_SUCCESS;
    mark_limbo(driver, domain);
    if (!domain->marks)
        return BFC_NO_MARK;
    bfc_mark complete = bfc_marks_wait(domain->marks, driver, mark, timeout_ns, &error);
    latch(domain, error);
    return complete;
}

/* A look settles a bounded number of marks: it is repeated as long as it finds more. */
void bfc_reuse_settle(struct bfc_domain *domain) {
    bfc_mark complete = BFC_NO_MARK, before;
    do {
        before = complete;
        complete = bfc_reuse_poll(domain);
    } while (complete > before);
    bfc_pool_complete(domain->pool, complete);
}

/* ---- allocating ---- */

/* While a mark stands that must be waited for on the host: has it been completed meanwhile? */
static __attribute__((noinline)) void look_at_lazy(const struct bfc_driver *driver,
                                                   struct bfc_domain *domain, bfc_mark until) {
    /* Should it have risen meanwhile, it stays; the next call sees it. */
    if (bfc_marks_poll(domain->marks, driver) >= until)
        __atomic_compare_exchange_n(&domain->lazy_until, &until, BFC_NO_MARK, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Whether dirty blocks may be handed out at once, and ordered behind their marks on the device. */
static inline bool may_reorder(struct bfc_domain *domain) {
    return !bfc_peers_exist(domain->context) &&
           __atomic_load_n(&domain->lazy_until, __ATOMIC_SEQ_CST) == BFC_NO_MARK;
}

static inline bool wants_dirty(const struct bfc_driver *driver, struct bfc_domain *domain) {
    if (domain->free_mode != BFC_FREE_ORDERED)
        return false;
    bfc_mark until = __atomic_load_n(&domain->lazy_until, __ATOMIC_SEQ_CST);
    if (__builtin_expect(until != BFC_NO_MARK, 0))
        look_at_lazy(driver, domain, until);
    return may_reorder(domain);
}

/*
 * A dirty block is announced before it is looked once more whether it may be: a thread that gives
 * another context access does the two the other way round, so one of the two sees the other. It
 * waits for what was announced, so that must not be a mark which only the host may wait for: hence
 * the look before; the block's own mark cannot become one later. Then the context's later work is
 * made to wait for the block's mark.
 */
static inline bool keep_dirty(const struct bfc_driver *driver, struct bfc_domain *domain,
                              const struct bfc_block_info *block, CUresult *result) {
    struct bfc_order order;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    bool kept = may_reorder(domain) && bfc_marks_announce(domain->marks, block->mark, &order);
    if (kept && !may_reorder(domain)) {
        bfc_marks_retract(domain->marks, &order);
        kept = false;
    }
    if (kept)
        *result = bfc_marks_order(domain->marks, driver, domain->context, &order);
    bfc_capture_restore(driver, mode);
    if (__builtin_expect(kept && *result == CUDA_SUCCESS, 1))
        return true;
    latch(domain, *result);
    bfc_pool_free(domain->pool, block->start, block->mark);
    return false;
}

CUresult bfc_reuse_allocate(const struct bfc_driver *driver, struct bfc_domain *domain,
                            size_t bytes, enum bfc_reuse_how how, CUdeviceptr *pointer,
                            enum bfc_status *status) {
    struct bfc_block_info block;
    CUresult result = (CUresult)__atomic_load_n(&domain->fatal, __ATOMIC_RELAXED);
    *status = BFC_OK;
    if (result != CUDA_SUCCESS)
        return result;
    unsigned base = how == BFC_REUSE_THERE ? BFC_ALLOCATE_HIT_ONLY : 0;
    unsigned dirty = how != BFC_REUSE_CLEAN && wants_dirty(driver, domain) ? BFC_ALLOCATE_DIRTY : 0;
    for (;;) {
        *status = bfc_pool_allocate(domain->pool, bytes, base | dirty, &block);
        if (*status != BFC_OK)
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (block.mark == BFC_NO_MARK || keep_dirty(driver, domain, &block, &result))
            break;
        if (result != CUDA_SUCCESS)
            return result;
        dirty = 0;
    }
    *pointer = block.start;
    return CUDA_SUCCESS;
}

/* ---- freeing ---- */

static CUresult take_back(struct bfc_domain *domain, CUdeviceptr pointer, bfc_mark mark) {
    return bfc_pool_free(domain->pool, pointer, mark) == BFC_OK ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

/* Marks after which what is complete is looked up: the pool asks only when it finds nothing clean.
 */
enum { LOOK_EVERY = 32 };

/* A capture that began unseen by us, or was invalidated, bars the record: later is soon enough. */
static bool is_barred(CUresult result) {
    return result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ||
           result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

/* Marks this moment in the contexts, and takes the block back under the mark. */
static inline CUresult free_marked(const struct bfc_driver *driver, struct bfc_domain *domain,
                                   CUdeviceptr pointer, const CUcontext *contexts, size_t count) {
    bfc_mark mark;
    CUresult result = record(driver, domain, contexts, count, false, &mark);
    if (__builtin_expect(result != CUDA_SUCCESS, 0))
        return is_barred(result) ? put_in_limbo(domain, pointer) : result;
    if (mark % LOOK_EVERY == 0)
        bfc_pool_complete(domain->pool, bfc_marks_poll(domain->marks, driver));
    return take_back(domain, pointer, BFC_JOINED(mark));
}

/*
 * Waits for an event that covers the context: unlike a wait by context it does no harm to a capture
 * that begins meanwhile. `captured`: something captures by now, so not.
 */
static __attribute__((noinline)) CUresult wait_for_mark(const struct bfc_driver *driver,
                                                        struct bfc_domain *domain, bool *captured) {
    bfc_mark mark;
    CUresult result = record(driver, domain, &domain->context, 1, false, &mark);
    if ((*captured = is_barred(result)))
        return CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    bfc_observe_wait(domain);
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    result = latch(domain, bfc_marks_synchronize(domain->marks, driver, mark));
    bfc_capture_restore(driver, mode);
    return result;
}

/* Waits for the block's context. */
static inline CUresult wait_for_owner(const struct bfc_driver *driver, struct bfc_domain *domain,
                                      bool *captured) {
    *captured = false;
    if (__builtin_expect(!domain->marks, 0))
        return synchronize(driver, domain, domain->context);
    struct bfc_waits *waits = bfc_capture_enter_wait();
    if (__builtin_expect(!waits, 0))
        return wait_for_mark(driver, domain, captured);
    CUresult result = synchronize(driver, domain, domain->context);
    bfc_capture_leave_wait(waits);
    return result;
}

static CUresult wait_for_peers(const struct bfc_driver *driver, struct bfc_domain *domain,
                               const CUcontext *peers, size_t count) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = synchronize(driver, domain, peers[i]);
    return result;
}

/* The owner was waited for; its peers' work is what the block is still dirty with. */
static __attribute__((noinline)) CUresult
free_of_peers(const struct bfc_driver *driver, struct bfc_domain *domain, CUdeviceptr pointer) {
    CUcontext peers[MARK_CONTEXTS];
    size_t count = contexts_of(domain, false, peers);
    if (count == 0)
        return take_back(domain, pointer, BFC_NO_MARK);
    if (domain->marks)
        return free_marked(driver, domain, pointer, peers, count);
    CUresult result = wait_for_peers(driver, domain, peers, count);
    return result == CUDA_SUCCESS ? take_back(domain, pointer, BFC_NO_MARK) : result;
}

static inline CUresult free_waited_for(const struct bfc_driver *driver, struct bfc_domain *domain,
                                       CUdeviceptr pointer) {
    return bfc_peers_known() ? free_of_peers(driver, domain, pointer)
                             : take_back(domain, pointer, BFC_NO_MARK);
}

static inline CUresult free_sync(const struct bfc_driver *driver, struct bfc_domain *domain,
                                 CUdeviceptr pointer) {
    bool captured;
    CUresult result = wait_for_owner(driver, domain, &captured);
    if (__builtin_expect(captured, 0))
        return put_in_limbo(domain, pointer);
    return __builtin_expect(result != CUDA_SUCCESS, 0) ? result
                                                       : free_waited_for(driver, domain, pointer);
}

static __attribute__((noinline)) CUresult free_later_with_peers(const struct bfc_driver *driver,
                                                                struct bfc_domain *domain,
                                                                CUdeviceptr pointer) {
    CUcontext contexts[MARK_CONTEXTS];
    size_t count = contexts_of(domain, true, contexts);
    return free_marked(driver, domain, pointer, contexts, count);
}

static inline CUresult free_later(const struct bfc_driver *driver, struct bfc_domain *domain,
                                  CUdeviceptr pointer) {
    return bfc_peers_known() ? free_later_with_peers(driver, domain, pointer)
                             : free_marked(driver, domain, pointer, &domain->context, 1);
}

/* As the driver answers an equally barred call; CUDA_SUCCESS if it was not barred after all. */
static CUresult ask_whether_barred(const struct bfc_driver *driver) {
    CUdeviceptr probe;
    CUresult result = driver->cuMemAlloc_v2(&probe, 1);
    if (result == CUDA_SUCCESS)
        driver->cuMemFree_v2(probe);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
}

static inline CUresult free_now(const struct bfc_driver *driver, struct bfc_domain *domain,
                                CUdeviceptr pointer) {
    return domain->free_mode == BFC_FREE_SYNC ? free_sync(driver, domain, pointer)
                                              : free_later(driver, domain, pointer);
}

static inline CUresult tell_of_free(struct bfc_domain *domain, CUdeviceptr pointer, uint64_t start,
                                    CUresult result) {
    if (__builtin_expect(result == CUDA_SUCCESS, 1))
        bfc_observe_free(domain, pointer, start);
    else if (result == CUDA_ERROR_INVALID_VALUE)
        bfc_observe_landmark(domain, BFC_EVENT_INVALID_FREE, pointer, 0);
    return result;
}

CUresult bfc_reuse_free_plainly(const struct bfc_driver *driver, struct bfc_domain *domain,
                                CUdeviceptr pointer) {
    uint64_t start = bfc_observe_free_start();
    BFC_WITHOUT_MARKS(return take_back(domain, pointer, BFC_NO_MARK);)
    return tell_of_free(domain, pointer, start, free_now(driver, domain, pointer));
}

CUresult bfc_reuse_free_here(const struct bfc_driver *driver, struct bfc_domain *domain,
                             CUdeviceptr pointer) {
    BFC_WITHOUT_MARKS(return take_back(domain, pointer, BFC_NO_MARK);)
    if (domain->free_mode != BFC_FREE_SYNC || !domain->marks)
        return bfc_reuse_free_plainly(driver, domain, pointer);
    struct bfc_waits *waits = bfc_capture_enter_wait();
    if (__builtin_expect(!waits, 0))
        return bfc_reuse_free_plainly(driver, domain, pointer);
    uint64_t start = bfc_observe_free_start();
    CUresult result = synchronize_current(driver, domain);
    bfc_capture_leave_wait(waits);
    if (__builtin_expect(result == CUDA_SUCCESS, 1))
        result = free_waited_for(driver, domain, pointer);
    return tell_of_free(domain, pointer, start, result);
}

static CUresult free_while_capturing(const struct bfc_driver *driver, struct bfc_domain *domain,
                                     CUdeviceptr pointer, enum bfc_capture_state state) {
    if (state == BFC_CAPTURE_BARRED) {
        CUresult result = ask_whether_barred(driver);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return domain->marks ? put_in_limbo(domain, pointer) : free_now(driver, domain, pointer);
}

CUresult bfc_reuse_free(const struct bfc_driver *driver, struct bfc_domain *domain,
                        CUdeviceptr pointer) {
    BFC_WITHOUT_MARKS(return take_back(domain, pointer, BFC_NO_MARK);)
    enum bfc_capture_state state = bfc_capture_state(driver);
    return state == BFC_CAPTURE_NONE ? free_now(driver, domain, pointer)
                                     : free_while_capturing(driver, domain, pointer, state);
}

/* ---- freeing in stream order ---- */

struct stream_calls {
    CUresult (*get_context)(CUstream, CUcontext *);
    CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
    CUresult (*synchronize)(CUstream);
};

static struct stream_calls stream_calls(const struct bfc_driver *driver, bool per_thread) {
    if (per_thread)
        return (struct stream_calls){driver->cuStreamGetCtx_ptsz, driver->cuStreamIsCapturing_ptsz,
                                     driver->cuStreamSynchronize_ptsz};
    return (struct stream_calls){driver->cuStreamGetCtx, driver->cuStreamIsCapturing,
                                 driver->cuStreamSynchronize};
}

/* A node that frees memory must be given a graph's own allocation: for ours the driver has this
 * answer. */
static bool is_capturing(const struct stream_calls *calls, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return calls->is_capturing && calls->is_capturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult bfc_reuse_free_async(const struct bfc_driver *driver, struct bfc_domain *domain,
                              CUdeviceptr pointer, CUstream stream, bool per_thread) {
    struct stream_calls calls = stream_calls(driver, per_thread);
    if (is_capturing(&calls, stream))
        return CUDA_ERROR_INVALID_VALUE;
    if (!domain->marks || !calls.get_context) {
        CUresult result = calls.synchronize ? calls.synchronize(stream) : CUDA_SUCCESS;
        return result == CUDA_SUCCESS ? bfc_reuse_free(driver, domain, pointer) : result;
    }
    CUcontext contexts[MARK_CONTEXTS], context = NULL;
    CUresult result = calls.get_context(stream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    /* A stream of another context that may use the block is a peer's, from now on at the latest. */
    if (context != domain->context &&
        (result = bfc_peers_add(context, domain->context)) != CUDA_SUCCESS)
        return result;
    size_t count = contexts_of(domain, true, contexts);
    return free_marked(driver, domain, pointer, contexts, count);
}

/* ---- showing memory to others ---- */

/*
 * Blocks that were handed out before their marks were complete are ordered only behind work of
 * their own context. So before anybody else can touch one, the host waits for those marks. An error
 * is the context's, and the driver's next call tells it.
 */
static void wait_for_handed_out(const struct bfc_driver *driver, struct bfc_domain *domain) {
    bfc_mark announced = domain->marks ? bfc_marks_announced(domain->marks) : BFC_NO_MARK;
    if (announced != BFC_NO_MARK)
        bfc_marks_wait(domain->marks, driver, announced, UINT64_MAX, NULL);
}

/* A region needs no holding: it is not given back while the block that was shown is live. */
void bfc_reuse_show(const struct bfc_driver *driver, struct bfc_domain *domain,
                    CUdeviceptr pointer) {
    bfc_pool_share_region(domain->pool, pointer, false);
    wait_for_handed_out(driver, domain);
}

/* The peer is entered first, and waited for before it can touch anything. */
static CUresult add_peer(const struct bfc_driver *driver, CUcontext accessor, CUcontext owner) {
    CUresult result = bfc_peers_add(accessor, owner);
    struct bfc_domain *domain = result == CUDA_SUCCESS ? bfc_domain_of_context(owner) : NULL;
    if (domain)
        wait_for_handed_out(driver, domain);
    bfc_domain_drop(domain);
    return result;
}

CUresult bfc_reuse_enable_peer(const struct bfc_driver *driver, CUcontext owner, unsigned flags) {
    CUcontext current = NULL;
    if (driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current && owner) {
        CUresult result = add_peer(driver, current, owner);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return driver->cuCtxEnablePeerAccess(owner, flags);
}

/* The mapping's device is another one: this context may have got access to all that is there. */
static CUresult add_peers_on(const struct bfc_driver *driver, CUcontext accessor, CUdevice device) {
    struct bfc_domain *domain;
    CUcontext primary = bfc_primary_context(driver, device);
    CUresult result = primary ? add_peer(driver, accessor, primary) : CUDA_SUCCESS;
    for (unsigned i = 0; result == CUDA_SUCCESS && (domain = bfc_domain_at(i)); i++) {
        if (domain->device == device && domain->context != primary)
            result = add_peer(driver, accessor, domain->context);
        bfc_domain_drop(domain);
    }
    return result;
}

CUresult bfc_reuse_peer_opened(const struct bfc_driver *driver, CUcontext accessor,
                               CUdeviceptr mapped) {
    CUdevice own, device;
    if (!driver->cuPointerGetAttribute || driver->cuCtxGetDevice(&own) != CUDA_SUCCESS ||
        driver->cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, mapped) !=
            CUDA_SUCCESS ||
        device == own)
        return CUDA_SUCCESS;
    return add_peers_on(driver, accessor, device);
}

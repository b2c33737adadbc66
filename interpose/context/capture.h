/*
 * The gate: a process-wide lock between stream captures and the library's own driver calls.
 *
 * A call that records or awaits an event for a whole context fails while any stream of that context
 * captures, and invalidates the capture; and a capture can spread from context to context. So the
 * library makes such calls, which must not block, inside the gate. Many threads may be inside at
 * once, but only while nothing captures. A thread that begins a capture waits until the gate is
 * empty, and lets no other thread in until the capture has begun. No thread waits on the host
 * inside the gate.
 */
#ifndef BFC_INTERPOSE_CAPTURE_H
#define BFC_INTERPOSE_CAPTURE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/thread_identity.h"
#include "interpose/driver/driver.h"
#include "pool/structures/lock.h"

/* What the captures under way mean for a call of this thread that captures may forbid, such as an
 * allocation or a free. */
enum bfc_capture_state {
    BFC_CAPTURE_NONE,    /* nothing captures */
    BFC_CAPTURE_ALLOWED, /* something captures, but the driver would accept the call */
    BFC_CAPTURE_BARRED,  /* the driver would refuse the call because of a capture */
};
enum bfc_capture_state bfc_capture_ask(const struct bfc_driver *driver);

/* The number of captures under way; other files use bfc_captures_exist. */
extern unsigned bfc_captures_under_way HIDDEN;

/* Whether any capture is under way. A capture may begin right after this call; a caller that must
 * prevent that enters the gate. */
static inline bool bfc_captures_exist(void) {
    return bfc_load_acquire(&bfc_captures_under_way) != 0;
}

static inline enum bfc_capture_state bfc_capture_state(const struct bfc_driver *driver) {
    return bfc_captures_exist() ? bfc_capture_ask(driver) : BFC_CAPTURE_NONE;
}

/* becomes true for ever at the first capture; other files use bfc_capture_was_seen */
extern bool bfc_capture_seen HIDDEN;

static inline bool bfc_capture_was_seen(void) {
    return bfc_load_relaxed(&bfc_capture_seen);
}

/*
 * bfc_capture_enter_wait and bfc_capture_leave_wait enclose a host wait for all work of a context,
 * which is allowed only in a process that has never begun a capture. If bfc_capture_enter_wait
 * returns NULL, the process has begun one: the wait must not be made, and bfc_capture_leave_wait
 * not be called.
 *
 * A capture does not begin until such host waits are over: one that entered the driver later would
 * invalidate the capture. The thread that begins the capture waits for them a second at most,
 * because a host wait may itself depend on what this thread does next. No host wait is overlooked:
 * a host wait is first counted, and then bfc_capture_seen is read. A thread that begins a capture
 * first sets bfc_capture_seen, and then reads the counts.
 */
/* The first BFC_WAITS entries have one host wait at a time, so its end is a plain store. A host
 * wait that finds its thread's entry taken by another thread is counted in the last entry. */
#define BFC_WAITS 64
extern struct bfc_waits {
    unsigned under_way; /* atomic: how many host waits the entry has */
    char rest[60];      /* each entry has a cache line of its own */
} bfc_waits[BFC_WAITS + 1] HIDDEN;
static inline void bfc_capture_leave_wait(struct bfc_waits *waits) {
    if (UNLIKELY(waits == &bfc_waits[BFC_WAITS]))
        bfc_fetch_sub_release(&waits->under_way, 1);
    else
        bfc_store_release(&waits->under_way, 0);
}
static inline struct bfc_waits *bfc_capture_enter_wait(void) {
    struct bfc_waits *waits = &bfc_waits[(bfc_thread_identity() >> 12) % BFC_WAITS];
    if (UNLIKELY(bfc_exchange_seq_cst(&waits->under_way, 1))) {
        waits = &bfc_waits[BFC_WAITS];
        bfc_fetch_add_seq_cst(&waits->under_way, 1);
    }
    if (LIKELY(!bfc_load_seq_cst(&bfc_capture_seen)))
        return waits;
    bfc_capture_leave_wait(waits);
    return NULL;
}

/* Enters the gate, so that no capture can begin. False: something captures, and the gate was not
 * entered. The caller must leave the gate right after its calls, which must not block. */
bool bfc_gate_enter(void);
void bfc_gate_leave(void);

/* Enters the gate even while something captures, and so only keeps further captures from beginning.
 * For calls that do not affect captures under way. */
void bfc_gate_hold(void);

/* A part of the gate with a lock of its own, for calls that take that lock anyway. A thread that
 * begins a capture closes the gate, sets `shut` in each part, and waits until no call is inside the
 * gate or a part. A thread inside a part must not enter the gate nor wait for it: the thread that
 * begins a capture may be waiting until the part is empty. */
struct bfc_gate_part {
    /* guards all fields but `next`, and the data of calls that use this part */
    struct pool_lock lock;
    bool shut;
    /* Returns whether no call is inside the part. The caller holds the lock. */
    bool (*is_empty)(struct bfc_gate_part *gate_part);
    struct bfc_gate_part *next;
};
void bfc_gate_part_add(struct bfc_gate_part *gate_part,
                       bool (*is_empty)(struct bfc_gate_part *gate_part));
void bfc_gate_part_remove(struct bfc_gate_part *gate_part);

/* Whether a call may enter this part of the gate. The caller holds the part's lock. False with
 * `shut` set: a capture begins; release the lock, call bfc_gate_part_await and ask again. False
 * otherwise: something captures. */
static inline bool bfc_gate_part_is_open(const struct bfc_gate_part *gate_part) {
    return !gate_part->shut && bfc_load_acquire(&bfc_captures_under_way) == 0;
}
/* False: the calling thread itself begins the capture (a tool's callback in the driver's call has
 * called the library), and the call must do as if something captured already. */
bool bfc_gate_part_await(void);

/* Whether this error of the driver means that a stream capture forbids the call. That may be a
 * capture which the library did not see begin, or which began after the library had checked. The
 * driver has several such codes, one for each state of a capture. */
static inline bool bfc_is_capture_error(CUresult result) {
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

/* bfc_capture_relax_now sets the thread's capture mode to relaxed, so that captures do not forbid
 * the library's own calls, and returns the former mode. bfc_capture_restore_now sets that mode
 * again. */
CUstreamCaptureMode bfc_capture_relax_now(const struct bfc_driver *driver);
void bfc_capture_restore_now(const struct bfc_driver *driver, CUstreamCaptureMode mode);

/* Like bfc_capture_relax_now and bfc_capture_restore_now, but without a driver call in a process
 * that never began a capture. */
static inline CUstreamCaptureMode bfc_capture_relax(const struct bfc_driver *driver) {
    return UNLIKELY(bfc_capture_was_seen()) ? bfc_capture_relax_now(driver)
                                            : CU_STREAM_CAPTURE_MODE_RELAXED;
}
static inline void bfc_capture_restore(const struct bfc_driver *driver, CUstreamCaptureMode mode) {
    if (UNLIKELY(mode != CU_STREAM_CAPTURE_MODE_RELAXED))
        bfc_capture_restore_now(driver, mode);
}

/* A driver call that begins a capture is enclosed by bfc_capture_begin, which closes the gate, and
 * bfc_capture_began or, if the library does not know the call, bfc_capture_began_unknown, which
 * open it again. A capture of unknown mode is taken to forbid all calls until a hook sees its end.
 * The end of one that an unknown call began is never seen. */
#define BFC_CAPTURE_MODE_UNKNOWN ((CUstreamCaptureMode)-1)
void bfc_capture_begin(void);
void bfc_capture_began(CUstream stream, bool per_thread, CUstreamCaptureMode mode, CUresult result);
/* returns whether this is the process's first capture that a call unknown to the library began */
bool bfc_capture_began_unknown(CUresult result);

/* These functions remove captures that are over from the list. bfc_capture_review, called after the
 * program has ended a capture, asks the driver about each. bfc_capture_ended removes the captures
 * of a stream, after its capture has ended or before the stream is destroyed;
 * bfc_capture_context_ended removes the captures of a context that has ended. True: the last
 * capture was removed. */
bool bfc_capture_review(const struct bfc_driver *driver);
bool bfc_capture_ended(CUstream stream, bool per_thread);
bool bfc_capture_context_ended(CUcontext context);

#endif

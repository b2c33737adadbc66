/*
 * The gate between stream captures and our own driver calls.
 *
 * A call that records or awaits events of a whole context fails while any stream of that context
 * captures, and invalidates the capture; and a capture can spread from context to context. So there
 * is one gate for the process. A call that begins a capture passes it alone; our own non-blocking
 * calls pass it together, and only while nothing captures. No thread waits on the host while it is
 * inside the gate.
 */
#ifndef BFC_INTERPOSE_CAPTURE_H
#define BFC_INTERPOSE_CAPTURE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/thread_identity.h"
#include "interpose/driver/driver.h"
#include "pool/structures/lock.h"

/* What the captures under way mean for a call of this thread that they may bar, such as an
 * allocation or a free. */
enum bfc_capture_state {
    BFC_CAPTURE_NONE,    /* nothing captures */
    BFC_CAPTURE_ALLOWED, /* something captures, but does not bar the call */
    BFC_CAPTURE_BARRED,  /* the driver would refuse the call because of a capture */
};
enum bfc_capture_state bfc_capture_ask(const struct bfc_driver *driver);

/* How many captures are under way; callers read it by bfc_captures_exist. */
extern unsigned bfc_captures_under_way HIDDEN;

/* Whether any capture is under way. The answer may be out of date at once: a caller that must not
 * miss a capture passes the gate. */
static inline bool bfc_captures_exist(void) {
    return bfc_load_acquire(&bfc_captures_under_way) != 0;
}

static inline enum bfc_capture_state bfc_capture_state(const struct bfc_driver *driver) {
    return bfc_captures_exist() ? bfc_capture_ask(driver) : BFC_CAPTURE_NONE;
}

extern bool bfc_capture_seen HIDDEN; /* never becomes false again; callers read it by
                                       bfc_capture_was_seen */

/* Whether this process has ever begun a capture. */
static inline bool bfc_capture_was_seen(void) {
    return bfc_load_relaxed(&bfc_capture_seen);
}

/*
 * bfc_capture_enter_wait and bfc_capture_leave_wait enclose a host wait by context, which is
 * allowed only while this process has never begun a capture. If bfc_capture_enter_wait returns
 * NULL, the process has begun one: the wait must not be made, and there is nothing to leave.
 *
 * The first captures let the waits under way end before they begin, for a second at most: such a
 * wait may itself need what the capturing thread does next, and harms a capture only if it had not
 * entered the driver yet. Both a wait and a capture publish themselves before they check, so if
 * both begin together, one of them sees the other.
 */
#define BFC_WAITS 64 /* the number of counters, enough that most threads use different ones */
extern struct bfc_waits {
    unsigned under_way;
    char rest[60];
} bfc_waits[BFC_WAITS] HIDDEN;

static inline struct bfc_waits *bfc_capture_enter_wait(void) {
    struct bfc_waits *waits = &bfc_waits[(bfc_thread_identity() >> 12) % BFC_WAITS];
    bfc_fetch_add_seq_cst(&waits->under_way, 1);
    if (LIKELY(!bfc_load_seq_cst(&bfc_capture_seen)))
        return waits;
    bfc_fetch_sub_seq_cst(&waits->under_way, 1);
    return NULL;
}
static inline void bfc_capture_leave_wait(struct bfc_waits *waits) {
    bfc_fetch_sub_release(&waits->under_way, 1);
}

/* Passes the gate. False: something captures, and the gate was not passed. The caller must leave
 * the gate right after its calls, which must not block. */
bool bfc_gate_enter(void);
void bfc_gate_leave(void);

/* Passes the gate as bfc_gate_enter does, but even while something captures. So this only keeps
 * captures from beginning, and is for calls that affect no capture under way. */
void bfc_gate_hold(void);

/* A part of the gate with a lock of its own, for calls that take that lock anyway. A thread that
 * begins a capture shuts the gate, then each part, and waits until nothing is inside. A thread must
 * not pass a part while it waits for the gate, nor enter the gate while it is inside a part. */
struct bfc_gate_part {
    struct pool_lock lock; /* guards all fields but `next`, and the data that the part protects */
    bool shut;
    /* Returns whether no call is inside the part. Called with the lock held. */
    bool (*is_empty)(struct bfc_gate_part *gate_part);
    struct bfc_gate_part *next;
};
void bfc_gate_part_add(struct bfc_gate_part *gate_part,
                       bool (*is_empty)(struct bfc_gate_part *gate_part));
void bfc_gate_part_remove(struct bfc_gate_part *gate_part);

/* Whether a call may pass the part. Called under the part's lock. False: if the part is `shut`,
 * release the lock, call bfc_gate_part_await and ask again; otherwise something captures. */
static inline bool bfc_gate_part_is_open(const struct bfc_gate_part *gate_part) {
    return !gate_part->shut && bfc_load_acquire(&bfc_captures_under_way) == 0;
}
void bfc_gate_part_await(void);

/* Whether this error of the driver means that a capture forbids the call. The capture is one that
 * no hook saw, or that began after the hook looked. The driver has several such codes, and chooses
 * by the state of the capture. */
static inline bool bfc_is_capture_error(CUresult result) {
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

/* bfc_capture_relax_now sets the thread's capture mode to relaxed, so that no capture bars our own
 * calls, and returns the mode before; bfc_capture_restore_now sets that mode again. */
CUstreamCaptureMode bfc_capture_relax_now(const struct bfc_driver *driver);
void bfc_capture_restore_now(const struct bfc_driver *driver, CUstreamCaptureMode mode);

/* bfc_capture_relax and bfc_capture_restore do what bfc_capture_relax_now and
 * bfc_capture_restore_now do, but at no cost in a process that never began a capture. */
static inline CUstreamCaptureMode bfc_capture_relax(const struct bfc_driver *driver) {
    return UNLIKELY(bfc_capture_was_seen()) ? bfc_capture_relax_now(driver)
                                            : CU_STREAM_CAPTURE_MODE_RELAXED;
}
static inline void bfc_capture_restore(const struct bfc_driver *driver, CUstreamCaptureMode mode) {
    if (UNLIKELY(mode != CU_STREAM_CAPTURE_MODE_RELAXED))
        bfc_capture_restore_now(driver, mode);
}

/* bfc_capture_begin and one of the other two functions enclose the driver's call that begins a
 * capture; in between, nothing else passes the gate. A capture of unknown mode may bar anything,
 * and only the call that ends it reveals its end. The end of a capture that began in an unknown way
 * is never known. */
#define BFC_CAPTURE_MODE_UNKNOWN ((CUstreamCaptureMode)-1)
void bfc_capture_begin(void);
void bfc_capture_began(CUstream stream, bool per_thread, CUstreamCaptureMode mode, CUresult result);
bool bfc_capture_began_unknown(CUresult result); /* true: this is the process's first capture */

/* These functions forget captures that have ended. bfc_capture_review asks the driver about each
 * capture, after an end of capture. bfc_capture_ended forgets those of a stream, after an end of
 * capture and before the stream is destroyed; bfc_capture_context_ended those of a context that has
 * ended. True: there were captures, and now there is none. */
bool bfc_capture_review(const struct bfc_driver *driver);
bool bfc_capture_ended(CUstream stream, bool per_thread);
bool bfc_capture_context_ended(CUcontext context);

#endif

/*
 * Sends requests to a job and waits for the answers.
 *
 * The job's helper thread answers. Waits are bounded: a job that is stopped, or has no helper
 * thread, leaves the request unanswered.
 *
 * Thread-safety: one thread at a time, because the calls set the process's action on SIGBUS
 * (guard.h).
 */
#ifndef BFC_TOOLS_JOB_CLIENT_H
#define BFC_TOOLS_JOB_CLIENT_H

#include "base/clock.h"
#include "segment/name.h"

enum bfc_ask_result {
    BFC_ASK_DONE,
    BFC_ASK_UNANSWERED, /* no answer came in time, or the job has no helper thread */
    BFC_ASK_REFUSED,    /* the segment was refused; `reason` says why */
};

/* Returns a wait that ends `milliseconds` after this call. */
struct bfc_bounded_wait bfc_ask_wait(unsigned milliseconds);

/* Whether the job has a helper thread. Waits up to a second for that of a new job. */
bool bfc_ask_wait_for_helper(const struct bfc_segment_header *header);

/* Has the job refresh its map and its largest free blocks. Several calls may share one `wait`, so
 * that many stopped jobs cost no more time than one. If `wait` is NULL, the call sends the request
 * and returns at once. */
enum bfc_ask_result bfc_segment_refresh(int directory, const struct bfc_segment_name *name,
                                        struct bfc_bounded_wait *wait, char *reason, size_t size);

/*
 * Requests `bytes` of cached memory back (UINT64_MAX: all); `*released` is set to the bytes that
 * the job gave back.
 */
enum bfc_ask_result bfc_segment_trim(int directory, const struct bfc_segment_name *name,
                                     uint64_t bytes, unsigned timeout_ms, uint64_t *released,
                                     char *reason, size_t size);

/* What a job answered to a request about sleep. */
struct bfc_sleep_answer {
    struct bfc_segment_sleep sleep;
    uint64_t asleep; /* bytes of all its pools that are asleep */
};

/* Has the job fall asleep, or with `wake` wake, and waits until that is over. A job that works
 * after it has answered may be awake again when this returns. */
enum bfc_ask_result bfc_segment_ask_sleep(int directory, const struct bfc_segment_name *name,
                                          bool wake, unsigned timeout_ms,
                                          struct bfc_sleep_answer *answer, char *reason,
                                          size_t size);

#endif

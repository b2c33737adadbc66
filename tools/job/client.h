/*
 * Sends requests to a job by words in its segment (the shared-memory file), and waits for the
 * answers.
 *
 * The library's own thread in the job, its helper thread, answers. Waits are bounded: a job that is
 * stopped, or has no helper thread, leaves a request unanswered.
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
    BFC_ASK_UNANSWERED, /* no answer came in time, or the job has no thread that answers requests */
    BFC_ASK_REFUSED,    /* the shared-memory segment could not be used; `reason` says why */
};

/* Returns a wait that ends `milliseconds` after this call. */
struct bfc_bounded_wait bfc_ask_wait(unsigned milliseconds);

/* Whether the job has a helper thread, which answers requests. If the shared-memory segment is new,
 * waits up to a second for the thread to start. */
bool bfc_ask_wait_for_helper(const struct bfc_segment_header *header);

/* Asks the job to bring the map of its regions and the size of its largest free blocks up to date
 * in the shared-memory segment. Several calls may share one `wait`, so that many stopped jobs cost
 * no more time than one. If `wait` is NULL, the call does not wait for an answer. */
enum bfc_ask_result bfc_segment_refresh(int directory, const struct bfc_segment_name *name,
                                        struct bfc_bounded_wait *wait, char *reason, size_t size);

/*
 * Asks the job to give `bytes` of cached memory back to the device (UINT64_MAX: all), and waits for
 * at most `timeout_ms`. `*released` is set to the bytes that it gave back.
 */
enum bfc_ask_result bfc_segment_trim(int directory, const struct bfc_segment_name *name,
                                     uint64_t bytes, unsigned timeout_ms, uint64_t *released,
                                     char *reason, size_t size);

/* What a job answered to the request to sleep or to wake. */
struct bfc_sleep_answer {
    struct bfc_segment_sleep sleep;
    /* bytes of all the job's pools that are asleep: saved elsewhere, and not on the device */
    uint64_t asleep;
};

/* Asks the job to sleep (give its device memory back and save the contents), or with `wake` to
 * wake, and waits until it has. If the job submits work after its answer, it may be awake again
 * when this returns. */
enum bfc_ask_result bfc_segment_ask_sleep(int directory, const struct bfc_segment_name *name,
                                          bool wake, unsigned timeout_ms,
                                          struct bfc_sleep_answer *answer, char *reason,
                                          size_t size);

#endif

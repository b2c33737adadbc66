/*
 * The queue of those who wait for memory of one device (struct bfc_waiter): whose turn it is.
 *
 * First come, first served, but a waiter is passed over that could not be served even if all jobs
 * which do not wait gave up all they have: what stands in its way is held by waiters. If that is
 * true of all of them, and what younger ones hold would serve an older one, the youngest is told
 * so. (This is the test for deadlock of the banker's algorithm, E. W. Dijkstra, EWD 108, 1965, with
 * what the waiting hold as the only claim that is known.) No state; thread-safe.
 */
#ifndef BFC_SEGMENT_QUEUE_H
#define BFC_SEGMENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "layout/segment.h"

struct bfc_waiting {
    int32_t pid;
    uint32_t slot; /* which waiter of that process */
    uint64_t since_ns;
    uint64_t bytes; /* that it waits for */
    /* Bytes that its process has in use on the device, and that it has reserved there; the same for
     * all its slots. */
    uint64_t in_use, reserved;
};

struct bfc_queue_place {
    uint32_t position; /* from 1 */
    bool is_next;      /* it may take what comes free */
    bool is_stuck;     /* the waiting hold what the others want, and it is the youngest */
};

/*
 * Of the one with index `own` among `count`. `reach`: bytes that are free on the device, and those
 * that jobs have reserved in which nobody waits.
 */
struct bfc_queue_place bfc_queue_find_place(const struct bfc_waiting *all, size_t count, size_t own,
                                            uint64_t reach);

/*
 * What the driver takes for a range of so many bytes: above 1 MiB whole pages of 2 MiB. Smaller
 * ones share pages.
 */
#define BFC_DRIVER_PAGE (UINT64_C(2) << 20)
uint64_t bfc_in_driver_pages(uint64_t bytes);

/* Whether somebody waits there, and has looked lately. */
bool bfc_waiter_is_there(const struct bfc_waiter *waiter, uint64_t now_ns);

/* Has all who wait in this job look again. */
void bfc_waiters_wake(struct bfc_segment_header *header);

/*
 * Tells a job what somebody waits for on the device; its helper thread is woken if it did not know
 * of anybody. `header` has its whole segment behind it, here and below.
 */
void bfc_waiters_announce(struct bfc_segment_header *header, const uint8_t device_uuid[16],
                          const struct bfc_awaited *awaited, uint64_t now_ns);

/* What was announced was given, so it is not asked for again before the next announcement. */
void bfc_waiters_note_given(struct bfc_segment_header *header, const uint8_t device_uuid[16]);

/* Whether somebody in another job waits, as this one was told, on whichever device. */
bool bfc_waiters_exist(const struct bfc_segment_header *header);

/* What is waited for on the section's device; bytes 0: nothing. */
struct bfc_awaited bfc_waiters_want(const struct bfc_segment_pool *section);

#endif

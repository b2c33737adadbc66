/*
 * The queue of threads that wait for memory of one device (struct bfc_waiter).
 *
 * First come, first served; but a waiter is passed over if it could not be served even if all jobs
 * that do not wait gave up all their memory, because other waiters then hold what it needs. If no
 * waiter can be served, but one could be if those that came after it gave up their memory, the last
 * waiter in the queue is stuck, and must stop waiting. (This is the test for deadlock of the
 * banker's algorithm, E. W. Dijkstra, EWD 108, 1965; of the future requests of jobs, only those of
 * waiters are known.) No state; thread-safe.
 */
#ifndef BFC_SEGMENT_QUEUE_H
#define BFC_SEGMENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "layout/segment.h"

struct bfc_waiting {
    int32_t pid;
    uint32_t slot; /* the thread's index in the array of waiters in its process's segment */
    uint64_t since_ns;
    uint64_t bytes; /* bytes that the thread waits for */
    /* Bytes that the whole process has on the device; all waiters of one process have the same
     * numbers here. */
    uint64_t in_use, reserved;
};

struct bfc_queue_place {
    uint32_t position; /* the waiter's place in the queue; the first one is 1 */
    bool is_next;      /* the waiter may take memory that becomes free */
    bool is_stuck;     /* the waiter is the youngest in a deadlock, and must stop waiting */
};

/* Returns the place in the queue of the waiter with index `own` among `count`. `reach`: bytes that
 * are free on the device, plus the bytes reserved by jobs that do not wait. */
struct bfc_queue_place bfc_queue_find_place(const struct bfc_waiting *all, size_t count, size_t own,
                                            uint64_t reach);

/* Returns how much memory of the device the driver takes for an allocation: above 1 MiB, whole
 * pages of 2 MiB. Smaller allocations share pages, so for them it is their size. */
#define BFC_DRIVER_PAGE (UINT64_C(2) << 20)
uint64_t bfc_in_driver_pages(uint64_t bytes);

/* Whether the thread that this entry belongs to still waits for memory: it has examined the queue
 * within BFC_WAITER_LOST_NS. */
bool bfc_waiter_is_there(const struct bfc_waiter *waiter, uint64_t now_ns);

/* Wakes all threads of the job that wait for memory, so that they look at the queue again. */
void bfc_waiters_wake(struct bfc_segment_header *header);

/*
 * Announces to a job what another job waits for on the device, and wakes the job's helper thread
 * unless an earlier announcement is still valid. `header` must be the start of a whole mapped
 * segment, as for the other functions of this file.
 */
void bfc_waiters_announce(struct bfc_segment_header *header, const uint8_t device_uuid[16],
                          const struct bfc_awaited *awaited, uint64_t now_ns);

/* To be called when this job has given back the memory on this device that another job waits for
 * (bfc_waiters_announce). The job then gives back no more until the next announcement. */
void bfc_waiters_note_given(struct bfc_segment_header *header, const uint8_t device_uuid[16]);

/* Whether this job was told, by an announcement that has not run out (bfc_waiters_announce), that
 * another job waits for memory of any device. */
bool bfc_waiters_exist(const struct bfc_segment_header *header);

/* Returns what another job waits for on the section's device, as bfc_waiters_announce wrote it. If
 * `bytes` of the result is 0, nothing was announced, or the announcement has run out. */
struct bfc_awaited bfc_waiters_want(const struct bfc_segment_pool *section);

#endif

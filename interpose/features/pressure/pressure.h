/*
 * What is tried when a device has no memory left, beyond what the pool itself can do: other jobs
 * are asked for what they cache, frees of other jobs are waited for (BFC_WAIT), and memory that
 * this job frees goes to jobs that wait. If all fails a message says why. Thread-safe.
 */
#ifndef BFC_INTERPOSE_PRESSURE_H
#define BFC_INTERPOSE_PRESSURE_H

#include "interpose/arena/arena.h"
#include "interpose/reuse/last_resort.h"
#include "segment/other_jobs.h"

/* Asks the user's other preloaded jobs to give back what they only cache, again and again as long
 * as memory comes, for a second at most. Returns whether the allocation is served. */
bool bfc_ask_jobs(struct bfc_call *call);

/*
 * Waits in the device's queue (segment/queue.h) until the allocation is served, BFC_WAIT is over,
 * the context or the process is about to end, or the wait proves to be in vain. A signal handler
 * that runs in this thread ends the wait, too, if any signal that the thread does not block has a
 * handler that does not restart system calls. Sets the call's `waited` to the reason. True: served.
 * Takes at most BFC_WAIT and the time of one examination of the queue.
 */
bool bfc_wait_for_others(struct bfc_call *call);

/*
 * Asks other preloaded jobs of this user on the arena's device, through the request words of their
 * segments, to give back `wanted` bytes in all; returns how many bytes came. Takes at most 90 ms if
 * the others are stopped. If one runs but does not answer, takes at most a second, and that once a
 * minute for each job. Requests without an answer are withdrawn.
 */
uint64_t bfc_yield_ask(const struct bfc_arena *arena, uint64_t wanted);

/* Memory that an allocation waits for on a device. */
struct bfc_demand {
    uint64_t bytes;      /* 0: no allocation waits any more */
    uint64_t turn_ns;    /* when the allocation became the first in the queue, by
                            bfc_kernel_now_ns */
    uint64_t free_bytes; /* bytes that are free on the device */
};

/*
 * Announces to `count` jobs on the arena's device the memory that an allocation waits for there.
 * These jobs then wake the waiting threads when they free something. Those with BFC_WAIT also do
 * not grow into the announced memory, and hand memory over once it suffices for the allocation. A
 * job that knows of the demand already gets no new announcement for a while.
 */
void bfc_announce(const struct bfc_arena *arena, const struct bfc_other_job *jobs, size_t count,
                  struct bfc_demand demand);

/* Writes into this process's own segment that an allocation of another job waits for `bytes` bytes,
 * so that this process leaves them to it. That does not make this process hand over memory of its
 * own. */
void bfc_announce_here(const struct bfc_arena *arena, uint64_t bytes);

/* Called for each new arena (`arena_published` of struct bfc_feature): looks up which memory jobs
 * wait for on its device, since these jobs have announced it before they knew this process. Does
 * nothing if this process has no BFC_WAIT. */
void bfc_announce_to_new(struct bfc_arena *arena, bool is_ours);

/*
 * Called after each free (`freed` of struct bfc_feature). If the memory that this process caches
 * suffices for an allocation of another job that waits, that memory goes back to the driver at
 * once, so that this process's next allocation does not take it again. Does nothing unless the free
 * may wait for work of contexts, and this process has BFC_WAIT, and so will wait behind that job
 * when it next lacks memory.
 */
void bfc_hand_over(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result, bool may_wait);

/* Bytes by which the driver rounds up what this process's pools have on the device
 * (segment/queue.h: bfc_in_driver_pages). O(regions). */
uint64_t bfc_rounded_up_on(CUdevice device);

/* Returns the most device memory that the driver can have taken for `bytes` of the job's regions.
 * That is an upper bound, since a job does not publish the sizes of its regions. */
uint64_t bfc_rounded_at_most(uint64_t bytes, const struct bfc_other_job *job);

/*
 * Logs why an allocation is about to fail: who holds what, which limit applies, what was tried and
 * what would have helped. A program that fails again and again gets the text once, then a line a
 * minute with the number of failures, until it has not failed for a minute.
 */
void bfc_explain_out_of_memory(const struct bfc_call *call);

#endif

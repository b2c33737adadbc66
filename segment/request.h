/*
 * The client's half of the request protocol (layout/segment.h). A client writes requests to a job's
 * helper thread into the header of the job's segment, which the client has mapped. The client
 * decides how long it waits for the answer, since a job that is stopped or has no helper thread
 * never answers. Thread-safe.
 */
#ifndef BFC_SEGMENT_REQUEST_H
#define BFC_SEGMENT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/segment.h"

struct bfc_request {
    struct bfc_segment_header *header;
    uint64_t bytes; /* bytes that the job is asked to give back; 0: something else is requested */
    /* how many bytes the job had ever given back when the request was made */
    uint64_t released_before;
    uint32_t number;
};

/* Adds 1 to a futex word of a segment and wakes the threads that wait for it; returns the new
 * value. */
uint32_t bfc_segment_wake(uint32_t *word);

/* Whether the job has a living helper thread. */
bool bfc_segment_has_helper(const struct bfc_segment_header *header);

/* Whether the job has a living helper thread, or has just started. A job that has just
 * started will soon have one, which answers earlier requests too. */
bool bfc_segment_may_answer(const struct bfc_segment_header *header);

/* Requests `bytes` of cached memory back (UINT64_MAX: all). */
struct bfc_request bfc_request_trim(struct bfc_segment_header *header, uint64_t bytes);

/* Requests that the job refreshes its map and its largest free blocks. */
struct bfc_request bfc_request_refresh(struct bfc_segment_header *header);

/* Each requests that the job writes a file for its readers: the first, which call stacks hold its
 * memory (layout/who.h); the second, these and all blocks of its pools; the third, its plans. */
struct bfc_request bfc_request_who(struct bfc_segment_header *header);
struct bfc_request bfc_request_who_and_blocks(struct bfc_segment_header *header);
struct bfc_request bfc_request_plan(struct bfc_segment_header *header);

/* Requests that the job sleeps or wakes. Adds 1 to `word`, a member of header->sleep: `asked` to
 * have the job sleep, `begged` to have it sleep because another job needs memory, `wake_asked` to
 * wake it. The job writes its answer into header->sleep. */
struct bfc_request bfc_request_sleep(struct bfc_segment_header *header, uint32_t *word);

/* Whether the job has answered all that was asked about sleep so far. */
bool bfc_sleep_is_answered(const struct bfc_segment_sleep *sleep);

bool bfc_request_is_served(const struct bfc_request *request);

/* Returns how many bytes the job has given back since the request was made, whether for this
 * request or for others. */
uint64_t bfc_request_released(const struct bfc_request *request);

/* Withdraws the request's bytes from what the job is asked to give back. A client must call it when
 * it no longer waits for them. */
void bfc_request_withdraw(const struct bfc_request *request);

#endif

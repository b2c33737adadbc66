/*
 * Asking a job for something, by the request words of its segment (interpose/segment_layout.h).
 *
 * The job's helper thread answers. Waits are bounded: a job that is stopped, or has no helper
 * thread, leaves the request unanswered. Thread-safety: as bfc_segment_read.
 */
#ifndef BFC_TOOLS_SEGMENT_REQUEST_H
#define BFC_TOOLS_SEGMENT_REQUEST_H

#include "tools/segment_reader.h"

enum bfc_ask_result {
    BFC_ASK_DONE,
    BFC_ASK_UNANSWERED, /* not within the time, or there is no helper thread */
    BFC_ASK_REFUSED,    /* as BFC_READ_REFUSED or BFC_READ_ABSENT; `reason` says why */
};

/* Has the map and the largest free blocks brought up to date. */
enum bfc_ask_result bfc_segment_refresh(int directory, const struct bfc_segment_name *name,
                                        unsigned timeout_ms, char *reason, size_t size);

/* Asks for `bytes` of cached memory back (UINT64_MAX: all); `*released`: how many came. */
enum bfc_ask_result bfc_segment_trim(int directory, const struct bfc_segment_name *name,
                                     uint64_t bytes, unsigned timeout_ms, uint64_t *released,
                                     char *reason, size_t size);

#endif

/*
 * Collects a job's last calls, with what their events do not say: how large a freed block was, and
 * at which site a block was allocated.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_CALLS_H
#define BFC_TOOLS_BFCSTAT_CALLS_H

#include "tools/bfcstat/address_table.h"
#include "tools/bfcstat/event_order.h"
#include "tools/bfcstat/new_events.h"
#include "tools/job/job_who.h"

enum { CALLS_MOST = 1000000 };

struct call {
    /* the call's event; for a free, with the bytes of the block, where they are known */
    struct bfc_event event;
    uint32_t site; /* number of the site that allocated the block; 0: not known */
    bool known;    /* whether the bytes of the call are known */
};

/* The block at an address; 0 bytes: it was freed. */
struct known_block {
    uint64_t address, bytes;
    uint32_t site;
};

struct calls {
    struct call *list; /* the calls, oldest first */
    size_t count, room;
    struct new_events unseen;
    struct event_order order;
    uint64_t dropped;            /* how many of the oldest calls were dropped for want of room */
    uint64_t untold;             /* how many frees were of blocks that are not known */
    struct address_table blocks; /* its entries are struct known_block */
    bool failed;                 /* whether the host had too little memory */
};

/* Begins with the calls after the copy `job`; `blocks` is an answer that the job gave a little
 * later than that copy was made. */
void calls_begin(struct calls *calls, const struct bfc_job *job, const struct bfc_who *blocks);

/* Begins with the events of the copy `later`; `blocks` is an answer that the job gave between the
 * two copies. */
void calls_begin_before(struct calls *calls, const struct bfc_job *earlier,
                        const struct bfc_who *blocks, const struct bfc_job *later);

/* Adds the calls that are new in a copy of the segment. */
void calls_add(struct calls *calls, const struct bfc_job *job);

/* Ends the list, which has the last CALLS_MOST calls then, with all bytes and sites that are known.
 * The list is not valid before. */
void calls_finish(struct calls *calls, const struct bfc_who *who);

void calls_free(struct calls *calls);

#endif

/*
 * A job's last calls, with what their events do not tell: how large a freed block was, and at which
 * site a block was allocated. Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_CALLS_H
#define BFC_TOOLS_BFCSTAT_CALLS_H

#include "tools/bfcstat/address_table.h"
#include "tools/bfcstat/event_order.h"
#include "tools/bfcstat/new_events.h"
#include "tools/job/job_who.h"

enum { CALLS_MOST = 1000000 };

struct call {
    struct bfc_event event; /* the event of a free has its block's bytes, where they are known */
    uint32_t site;          /* 0: not known */
    bool known;             /* how many bytes it is about */
};

/* Blocks in use by their address; 0 bytes: freed. */
struct known_block {
    uint64_t address, bytes;
    uint32_t site;
};

struct calls {
    struct call *list; /* in order */
    size_t count, room;
    struct new_events unseen;
    struct event_order order;
    uint64_t dropped;            /* the oldest, for want of room */
    uint64_t untold;             /* frees of blocks that are not known */
    struct address_table blocks; /* of struct known_block */
    bool failed;                 /* no memory */
};

/* From now on; `blocks` are of a little later than the copy. */
void calls_begin(struct calls *calls, const struct bfc_job *job, const struct bfc_who *blocks);

/* With the events of the copy `later`; `blocks` are of between the two copies. */
void calls_begin_before(struct calls *calls, const struct bfc_job *earlier,
                        const struct bfc_who *blocks, const struct bfc_job *later);

/* Adds the calls that are new in a copy of the segment. O(events in the copy). */
void calls_add(struct calls *calls, const struct bfc_job *job);

/* Fills in what is known. Then the list is of use. */
void calls_finish(struct calls *calls, const struct bfc_who *who);

void calls_free(struct calls *calls);

#endif

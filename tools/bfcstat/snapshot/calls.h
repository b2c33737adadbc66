/*
 * A job's last calls, with what their events do not tell: how large a freed block was, and at which
 * site a block was allocated. Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_CALLS_H
#define BFC_TOOLS_BFCSTAT_CALLS_H

#include "tools/bfcstat/new_events.h"
#include "tools/job/who.h"

enum { CALLS_MOST = 1000000 };

struct call {
    struct bfc_event event; /* of a free: with the block's bytes, where they are known */
    uint32_t site;          /* 0: not known */
    bool known;             /* how many bytes it is about */
};

/* Blocks in use by their address; 0 bytes: freed. */
struct known_block {
    uint64_t address, bytes;
    uint32_t site;
};

struct calls {
    struct call *list; /* by the number of the event, once finished */
    size_t count, room;
    struct new_events unseen;
    uint64_t dropped; /* the oldest, for want of room */
    uint64_t untold;  /* frees of blocks that are not known */
    struct known_block *blocks;
    size_t block_count, block_slots;
    bool failed; /* no memory */
};

/* NULL: with the events that the copy holds. Else from now on; `blocks` are of a little later than
 * the copy. */
void calls_begin(struct calls *calls, const struct bfc_job *job, const struct bfc_who *blocks);

/* What is new in a copy of the segment. O(events in it). */
void calls_add(struct calls *calls, const struct bfc_job *job);

/* Puts them into order, and fills in what is known. Then the list is of use. */
void calls_finish(struct calls *calls, const struct bfc_who *who);

void calls_free(struct calls *calls);

#endif

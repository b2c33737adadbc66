/*
 * Collects a job's last allocations and frees (calls). For each free it adds what the event of the
 * free does not tell: how large the block was, and at which site (call stack) it was allocated.
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
    /* The event of the call. A free's event has no size, so its `bytes` are filled in with the size
     * of the block, if that is known. */
    struct bfc_event event;
    uint32_t site; /* number of the call stack (site) that allocated the block; 0: not known */
    bool known;    /* whether event.bytes is valid */
};

/* What is known of the block that begins at an address; if `bytes` is 0, it was freed. */
struct known_block {
    uint64_t address, bytes;
    uint32_t site;
};

struct calls {
    struct call *list; /* the calls, oldest first; an array of `room` elements */
    size_t count, room;
    struct new_events unseen;
    struct event_order order;
    uint64_t dropped; /* how many calls, the oldest, were dropped because the list was full */
    uint64_t untold;  /* how many frees in the list are of blocks whose size is not known */
    struct address_table blocks; /* a table by address, whose entries are struct known_block */
    bool failed; /* whether memory of the host ran out, so that the list is incomplete */
};

/* Begins an empty list. calls_add then adds the calls that come after the copy `job` of the
 * shared-memory segment. `blocks`, the list of blocks that the job gave just after this copy, tells
 * the sizes of blocks that were allocated before. */
void calls_begin(struct calls *calls, const struct bfc_job *job, const struct bfc_who *blocks);

/* Begins the list with all calls in the copy `later` of the shared-memory segment. `blocks` is the
 * list of blocks that the job gave after the copy `earlier` and before `later`; together with both
 * copies it tells which blocks were in use before the first of the calls. */
void calls_begin_before(struct calls *calls, const struct bfc_job *earlier,
                        const struct bfc_who *blocks, const struct bfc_job *later);

/* Adds the calls in a copy of the shared-memory segment that were not in earlier copies. */
void calls_add(struct calls *calls, const struct bfc_job *job);

/* Completes the list, which must not be read earlier. It then has the last calls, at most
 * CALLS_MOST, with sizes and call stacks as far as they are known. `who` is the job's answer about
 * its call stacks. */
void calls_finish(struct calls *calls, const struct bfc_who *who);

void calls_free(struct calls *calls);

#endif

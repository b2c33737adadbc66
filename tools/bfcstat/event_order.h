/*
 * Puts allocations and frees of several threads into an order in which they can have happened.
 *
 * A thread takes numbers for its events in batches of 8, so that an event may have a lower number
 * than an earlier event of another thread. Two things are certain: the events of a batch are of one
 * thread and in order, and at one address allocations and frees alternate. So an event that cannot
 * come next at its address, such as a free where no block is in use, waits, with the rest of its
 * batch, until another event has made it possible. It waits for one more round (one more copy of
 * the job's shared-memory segment) at most, because that other event may have been overwritten
 * before it was read.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_EVENT_ORDER_H
#define BFC_TOOLS_BFCSTAT_EVENT_ORDER_H

#include "tools/bfcstat/address_table.h"
#include "tools/job/job_who.h"
#include "tools/job/reader.h"

/* What is known of one address at which blocks begin, from the events that were put into order and
 * from the list of blocks that the job gives on request. */
struct event_place {
    uint64_t address;
    int balance;   /* number of allocations at the address, less the number of frees */
    unsigned pool; /* index of the pool of the last event that concerned the address */
    /* False: `in_use` may be wrong, since there was no list of the job's blocks, or events were
     * lost. */
    bool known;
    bool in_use, begins_with_free, listed, moving;
    /* Values of `known` and `in_use` from before an order is tried, which are put back after the
     * trial. */
    bool was_known, was_in_use;
};

struct waiting_event {
    struct bfc_event event;
    /* What is known of the event's address; NULL: the event concerns no block, or there was no
     * memory. */
    struct event_place *place;
    /* Guessed times: when the event's batch (up to 8 events of one thread, numbered together)
     * began, and when the event came. The unit is the time between the starts of two batches. */
    double begun, guess;
    /* `old`: the event has waited since an earlier round (an earlier copy of the shared-memory
     * segment); `out`: it was put into order in this round. */
    bool old, out;
};

struct event_order {
    struct address_table places; /* a table by address, whose entries are struct event_place */
    /* True: the job has listed its blocks, so that an address which is not in the table has no
     * block in use, except in `unlisted_pools`. */
    bool knows;
    /* Bit i: the pool with index i is of host memory, so the lists of blocks that the job gives do
     * not have its blocks. */
    uint64_t unlisted_pools;
    struct waiting_event waiting[2 * BFC_EVENTS];
    size_t waiting_count;
    /* The events that the last call of event_order_round or event_order_correct has put into order;
     * the call returned how many are valid. */
    struct bfc_event ordered[2 * BFC_EVENTS];
};

/* Begins to put events into order. The job gave `who`, the list of its blocks, between the copies
 * `earlier` and `later` of its shared-memory segment. The list and the events in `later` tell which
 * blocks were in use before these events. If this is not called, `order` must be all zeros; then
 * nothing is known of any address at first. */
void event_order_begin(struct event_order *order, const struct bfc_job *earlier,
                       const struct bfc_who *who, const struct bfc_job *later);

/* Must be called when events were overwritten before they were read: after that, what the order
 * knows of each address may be wrong. */
void event_order_forget(struct event_order *order);

/* Adds an event to those that the next call of event_order_round puts into order; at most
 * BFC_EVENTS between two such calls. */
void event_order_add(struct event_order *order, const struct bfc_event *event);

/* Puts the added events into order->ordered, and returns how many; they come after those of earlier
 * calls. An event that does not fit yet waits for the next call; with `last`, none waits. The time
 * is in O(added events * events that wait). */
size_t event_order_round(struct event_order *order, bool last);

/* Corrects what the order knows of the addresses, by `who`, a list of blocks that the job gave
 * between the copies `earlier` and `later` of its shared-memory segment. Where a block is in use by
 * the events so far but is not in the list, its free was lost: a free at time `us` is put into
 * `ordered`. Returns how many frees were put there. Leaves out addresses in host memory, addresses
 * with an event between the two copies, and addresses with an event that waits. Of every other
 * address the order knows afterwards whether a block is in use there. */
size_t event_order_correct(struct event_order *order, const struct bfc_job *earlier,
                           const struct bfc_who *who, const struct bfc_job *later, uint64_t us);

void event_order_free(struct event_order *order);

#endif

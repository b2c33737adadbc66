/*
 * Puts events of several threads into an order in which they can have come.
 *
 * Threads draw the numbers of their events in batches, so that an event may have a lower number
 * than an earlier event of another thread. Two things are certain: the events of a batch are of one
 * thread and in order, and at one address allocations and frees alternate. So an event that does
 * not fit waits, with the rest of its batch, until an event comes after which it fits; but it waits
 * for one more round at most, because an event that was overwritten never comes.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_EVENT_ORDER_H
#define BFC_TOOLS_BFCSTAT_EVENT_ORDER_H

#include "tools/bfcstat/address_table.h"
#include "tools/job/job_who.h"
#include "tools/job/reader.h"

/* An address at which blocks begin, the sum of their events, and whether a block is there now. */
struct event_place {
    uint64_t address;
    int balance;   /* allocations minus frees */
    unsigned pool; /* pool of the last event */
    /* false: `in_use` may be wrong, since no list of blocks was at hand or events were lost */
    bool known;
    bool in_use, begins_with_free, listed, moving;
    /* copies of `known` and `in_use` that are kept while an order is tried */
    bool was_known, was_in_use;
};

struct waiting_event {
    struct bfc_event event;
    /* the place of the event's address; NULL: the event concerns no block, or there was no
     * memory */
    struct event_place *place;
    /* guessed times, in units of one batch each: when the event's batch began, and when the event
     * came */
    double begun, guess;
    /* `old`: the event was left over from the round before; `out`: it is in the order by now */
    bool old, out;
};

struct event_order {
    struct address_table places; /* its entries are struct event_place */
    bool knows; /* if true, an address without a place has no block, except in `unlisted_pools` */
    uint64_t unlisted_pools; /* bit i: no list of blocks from the job names those of pool i */
    struct waiting_event waiting[2 * BFC_EVENTS];
    size_t waiting_count;
    struct bfc_event ordered[2 * BFC_EVENTS]; /* the events that the last call has put into order */
};

/* Notes in `order` which blocks were in use before the events of `later`, if `who` lists the job's
 * blocks and was asked for between the copies `earlier` and `later`. An order that is all zeros is
 * valid without this call, and knows of no address. */
void event_order_begin(struct event_order *order, const struct bfc_job *earlier,
                       const struct bfc_who *who, const struct bfc_job *later);

/* Must be called when events were lost: what the order knows of each address may be wrong then. */
void event_order_forget(struct event_order *order);

/* Adds an event to this round, which may have at most BFC_EVENTS new ones. */
void event_order_add(struct event_order *order, const struct bfc_event *event);

/* Ends a round, and returns how many events of `ordered` are valid; they follow those of the rounds
 * before. With `last`, no event waits any longer. O(events of the round * waiting events). */
size_t event_order_round(struct event_order *order, bool last);

/* Corrects the order by `who`, which was asked for between the copies `earlier` and `later`. Where
 * a block is in use by the events so far, but `who` does not list it, a free at time `us` is put
 * into `ordered`. Returns how many events of `ordered` are valid. Addresses with events between the
 * copies, with waiting events or of host memory are left alone; all others are known afterwards. */
size_t event_order_correct(struct event_order *order, const struct bfc_job *earlier,
                           const struct bfc_who *who, const struct bfc_job *later, uint64_t us);

void event_order_free(struct event_order *order);

#endif

/*
 * Events of several threads in an order in which they can have come.
 *
 * Threads take their events' numbers in batches, so that an event may have a lower number than one
 * of another thread that came before it. Two things are certain: the events of a batch are one
 * thread's, and in order; and at an address allocations and frees take turns. So an event that does
 * not fit waits, and the rest of its batch with it, until what it waits for has come; but no longer
 * than for one more round, since what was overwritten never comes.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_EVENT_ORDER_H
#define BFC_TOOLS_BFCSTAT_EVENT_ORDER_H

#include "tools/bfcstat/address_table.h"
#include "tools/job/job_who.h"
#include "tools/job/reader.h"

/* An address, what its blocks' events come to, and whether there is a block now. */
struct event_place {
    uint64_t address;
    int balance;   /* allocations less frees */
    unsigned pool; /* of its last event */
    bool known;    /* else `in_use` is what the last event made of it, and may be wrong */
    bool in_use, begins_with_free, listed, moving;
    bool was_known, was_in_use; /* before a try */
};

struct waiting_event {
    struct bfc_event event;
    struct event_place *place; /* NULL: the event is of no block */
    double begun, guess;       /* when its batch was begun, and when it came, in batches */
    bool old, out;             /* has waited for a round; has gone */
};

struct event_order {
    struct address_table places; /* of struct event_place */
    bool knows; /* at an address without a place there is no block; else there may be */
    uint64_t unlisted_pools; /* but for these: a bit for each */
    struct waiting_event waiting[2 * BFC_EVENTS];
    size_t waiting_count;
    struct bfc_event ordered[2 * BFC_EVENTS]; /* the last round's */
};

/* All zero is an order that knows of no address. This one knows what was in use before the events
 * of `later`, if `who` lists the blocks, and was asked for between the two copies. */
void event_order_begin(struct event_order *order, const struct bfc_job *earlier,
                       const struct bfc_who *who, const struct bfc_job *later);

/* Events were lost: nothing is certain any more. */
void event_order_forget(struct event_order *order);

/* At most BFC_EVENTS a round. */
void event_order_add(struct event_order *order, const struct bfc_event *event);

/* Ends a round: how many of `ordered` are of use, after those of the rounds before. `last`: nothing
 * waits any longer. O(events of the round * those that wait). */
size_t event_order_round(struct event_order *order, bool last);

/* Frees, at `us`, of blocks that `who`, which was asked for between the copies, does not list,
 * though by the events until `later` they are in use: how many of `ordered` are of use. All is
 * known again. */
size_t event_order_correct(struct event_order *order, const struct bfc_job *earlier,
                           const struct bfc_who *who, const struct bfc_job *later, uint64_t us);

void event_order_free(struct event_order *order);

#endif

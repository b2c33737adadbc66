#include "tools/bfcstat/event_order.h"

#include <stdlib.h>
#include <string.h>

/* The time of an event is only guessed, and the guess depends on how many threads made the calls.
 * So guesses for 1, 2, 4 and so on threads, up to this number, are tried, and the order in which
 * the fewest events contradict each other is used. */
enum { MOST_THREADS = 64 };

static struct event_place *find_place(const struct event_order *order, uint64_t address) {
    return address_table_find(&order->places, address);
}

/* Returns the n-th slot of the table of addresses; the address of an unused slot is 0. */
static struct event_place *nth_place(const struct event_order *order, size_t n) {
    return (struct event_place *)order->places.entries + n;
}

/* Returns the table's entry for the address, and adds one if there is none. NULL: no memory; then
 * the whole table was emptied. */
static struct event_place *place_of(struct event_order *order, uint64_t address) {
    struct event_place *place = address_table_put(&order->places, address, sizeof *place);
    if (!place)
        event_order_free(order);
    return place;
}

void event_order_forget(struct event_order *order) {
    for (size_t n = 0; n < order->places.slots; n++)
        nth_place(order, n)->known = false;
    order->knows = false;
}

void event_order_free(struct event_order *order) {
    address_table_free(&order->places);
    order->knows = false;
}

/* Stores for which pools the job's answer `who` lists all blocks in use. An answer lists no blocks
 * of host memory. If the answer had no room for some blocks, no pool counts as listed. */
static void learn_what_is_listed(struct event_order *order, const struct bfc_who *who,
                                 const struct bfc_job *job) {
    order->knows = who->header.left_out == 0;
    order->unlisted_pools = 0;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (bfc_pool_is_host(&job->pools[i]))
            order->unlisted_pools |= UINT64_C(1) << i;
}

static bool is_listed_pool(const struct event_order *order, unsigned pool) {
    return order->knows && !(order->unlisted_pools >> pool & 1);
}

static void mark_listed(struct event_order *order, const struct bfc_who *who) {
    for (size_t i = 0; i < order->places.slots; i++)
        nth_place(order, i)->listed = nth_place(order, i)->moving = false;
    for (uint64_t i = 0; i < who->header.blocks; i++) {
        const struct bfc_who_block *block = &who->blocks[i];
        bool counts = block->state == BFC_WHO_IN_USE && block->start;
        struct event_place *place = counts ? place_of(order, block->start) : NULL;
        if (place)
            place->listed = true;
    }
}

/* Marks the addresses that had an event between the two copies of the shared-memory segment. The
 * job listed its blocks between the two copies as well, perhaps before that event, perhaps after
 * it. */
static void mark_moving(struct event_order *order, const struct bfc_job *earlier,
                        const struct bfc_job *later) {
    static uint64_t seen[BFC_EVENTS];
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < earlier->event_count; i++)
        seen[(earlier->events[i].stamp - 1) % BFC_EVENTS] = earlier->events[i].stamp;
    for (size_t i = 0; i < later->event_count; i++) {
        const struct bfc_event *event = &later->events[i];
        bool is_new = seen[(event->stamp - 1) % BFC_EVENTS] != event->stamp;
        struct event_place *place = is_new ? find_place(order, event->address) : NULL;
        if (place)
            place->moving = true;
    }
}

static bool is_of_block(const struct bfc_event *event) {
    enum bfc_event_kind kind = bfc_event_kind_of(event->what);
    return event->address && (kind == BFC_EVENT_ALLOCATE || kind == BFC_EVENT_FREE);
}

static bool is_free(const struct bfc_event *event) {
    return bfc_event_kind_of(event->what) == BFC_EVENT_FREE;
}

static void add_up(struct event_order *order, const struct bfc_event *event) {
    bool first = !find_place(order, event->address);
    struct event_place *place = place_of(order, event->address);
    if (!place)
        return;
    if (first)
        place->begins_with_free = is_free(event);
    place->balance += is_free(event) ? -1 : 1;
    place->pool = bfc_event_pool(event->what);
}

/* Finds out whether a block was in use at the address before the first event that is to be put into
 * order. If the address had an event while the job listed its blocks (`moving`), the list proves
 * nothing. Then the event with the lowest number tells: if it is a free, a block was in use. At
 * other addresses a block was in use if the list has more blocks there than the events account for
 * (`balance`). */
static void conclude_place(const struct event_order *order, struct event_place *place) {
    place->known = place->address && is_listed_pool(order, place->pool);
    place->in_use = place->moving ? place->begins_with_free : place->listed > place->balance;
}

void event_order_begin(struct event_order *order, const struct bfc_job *earlier,
                       const struct bfc_who *who, const struct bfc_job *later) {
    event_order_free(order);
    learn_what_is_listed(order, who, later);
    for (size_t i = 0; i < later->event_count; i++)
        if (is_of_block(&later->events[i]))
            add_up(order, &later->events[i]);
    mark_listed(order, who);
    mark_moving(order, earlier, later);
    for (size_t i = 0; i < order->places.slots; i++)
        conclude_place(order, nth_place(order, i));
}

void event_order_add(struct event_order *order, const struct bfc_event *event) {
    if (order->waiting_count < sizeof order->waiting / sizeof *order->waiting)
        order->waiting[order->waiting_count++] = (struct waiting_event){.event = *event};
}

static int by_number(const void *left, const void *right) {
    uint64_t a = ((const struct waiting_event *)left)->event.stamp;
    uint64_t b = ((const struct waiting_event *)right)->event.stamp;
    return a < b ? -1 : a > b;
}

/* Whether the event can come next at its address: an allocation needs a free address, and a free
 * needs a block in use. If nothing is known of the address, each event can. If `place` is NULL, the
 * event concerns no block, or there was no memory to keep track of its address. */
static bool event_fits(const struct waiting_event *waiting) {
    const struct event_place *place = waiting->place;
    return !place || !place->known || place->in_use == is_free(&waiting->event);
}

static uint64_t batch_of(const struct waiting_event *waiting) {
    return (waiting->event.stamp - 1) / BFC_EVENT_BATCH;
}

/* Returns the waiting event to put into order next; NULL: none fits. A thread numbers its events in
 * batches, and the events of a batch are in order, so only the first waiting event of each batch
 * can be next. Of those of them that fit what is known of their addresses, it is the one with the
 * earliest guessed time. All events before index `from` were put into order already. */
static struct waiting_event *next_that_fits(struct event_order *order, size_t from) {
    struct waiting_event *best = NULL;
    uint64_t seen = UINT64_MAX;
    for (size_t i = from; i < order->waiting_count; i++) {
        struct waiting_event *waiting = &order->waiting[i];
        if (best && waiting->begun > best->guess)
            break;
        if (waiting->out || batch_of(waiting) == seen)
            continue;
        seen = batch_of(waiting);
        if (event_fits(waiting) && (!best || waiting->guess < best->guess))
            best = waiting;
    }
    return best;
}

static struct waiting_event *first_old(struct event_order *order, size_t from, bool last) {
    for (size_t i = from; i < order->waiting_count; i++)
        if (!order->waiting[i].out && (last || order->waiting[i].old))
            return &order->waiting[i];
    return NULL;
}

static void let_go(struct event_order *order, struct waiting_event *waiting, size_t number) {
    if (waiting->place) {
        waiting->place->in_use = !is_free(&waiting->event);
        waiting->place->known = true;
        waiting->place->pool = bfc_event_pool(waiting->event.what);
    }
    order->ordered[number] = waiting->event;
    waiting->out = true;
}

/* Guesses when each event came, as if `threads` threads had made calls in turn, each at the same
 * rate. */
static void guess_first(struct event_order *order, unsigned threads) {
    double begun = -1;
    uint64_t batch = UINT64_MAX, first = 0;
    for (size_t i = 0; i < order->waiting_count; i++) {
        struct waiting_event *waiting = &order->waiting[i];
        if (batch_of(waiting) != batch) {
            begun++;
            first = waiting->event.stamp;
        }
        batch = batch_of(waiting);
        waiting->begun = begun;
        waiting->guess =
            begun + (double)((waiting->event.stamp - first) * threads) / BFC_EVENT_BATCH;
        waiting->out = false;
    }
}

/* Puts waiting events into order->ordered, and returns how many. `*misfits` says how bad this order
 * is: the number of events that contradict what is known of their addresses, plus the number of
 * events that have to wait for a later round. */
static size_t put_into_order(struct event_order *order, unsigned threads, bool last,
                             size_t *misfits) {
    size_t count = 0, from = 0;
    struct waiting_event *next;
    guess_first(order, threads);
    *misfits = 0;
    while ((next = next_that_fits(order, from)) || (next = first_old(order, from, last))) {
        *misfits += !event_fits(next);
        let_go(order, next, count++);
        while (from < order->waiting_count && order->waiting[from].out)
            from++;
    }
    *misfits += order->waiting_count - count;
    return count;
}

static void take_back(struct event_order *order) {
    for (size_t i = 0; i < order->waiting_count; i++)
        if (order->waiting[i].place) {
            order->waiting[i].place->in_use = order->waiting[i].place->was_in_use;
            order->waiting[i].place->known = order->waiting[i].place->was_known;
        }
}

/* Points `place` of each waiting event to the entry of its address in the table order->places.
 * First adds all entries, and only then takes pointers to them, because a table that grows moves
 * its entries. */
static void find_places(struct event_order *order) {
    for (size_t i = 0; i < order->waiting_count; i++)
        if (is_of_block(&order->waiting[i].event) &&
            !find_place(order, order->waiting[i].event.address)) {
            struct event_place *place = place_of(order, order->waiting[i].event.address);
            if (place)
                place->known = is_listed_pool(order, bfc_event_pool(order->waiting[i].event.what));
        }
    for (size_t i = 0; i < order->waiting_count; i++) {
        struct waiting_event *waiting = &order->waiting[i];
        waiting->place =
            is_of_block(&waiting->event) ? find_place(order, waiting->event.address) : NULL;
        if (waiting->place) {
            waiting->place->was_in_use = waiting->place->in_use;
            waiting->place->was_known = waiting->place->known;
        }
    }
}

/* Keeps the events that could not be put into order yet, for the next round. */
static void keep_the_rest(struct event_order *order) {
    size_t kept = 0;
    for (size_t i = 0; i < order->waiting_count; i++)
        if (!order->waiting[i].out) {
            order->waiting[kept] = order->waiting[i];
            order->waiting[kept++].old = true;
        }
    order->waiting_count = kept;
}

size_t event_order_round(struct event_order *order, bool last) {
    size_t misfits = 0, least = SIZE_MAX, count = 0;
    unsigned best = 1;
    qsort(order->waiting, order->waiting_count, sizeof *order->waiting, by_number);
    find_places(order);
    for (unsigned threads = 1; threads <= MOST_THREADS && least; threads *= 2) {
        put_into_order(order, threads, last, &misfits);
        take_back(order);
        best = misfits < least ? threads : best;
        least = misfits < least ? misfits : least;
    }
    count = put_into_order(order, best, last, &misfits);
    keep_the_rest(order);
    return count;
}

static void mark_waiting(struct event_order *order) {
    for (size_t i = 0; i < order->waiting_count; i++) {
        struct event_place *place = find_place(order, order->waiting[i].event.address);
        if (place)
            place->moving = true;
    }
}

size_t event_order_correct(struct event_order *order, const struct bfc_job *earlier,
                           const struct bfc_who *who, const struct bfc_job *later, uint64_t us) {
    size_t count = 0;
    learn_what_is_listed(order, who, later);
    mark_listed(order, who);
    mark_moving(order, earlier, later);
    mark_waiting(order);
    for (size_t i = 0; i < order->places.slots && count < 2 * BFC_EVENTS; i++) {
        struct event_place *place = nth_place(order, i);
        if (!place->address || place->moving || !is_listed_pool(order, place->pool))
            continue;
        if (place->in_use && !place->listed)
            order->ordered[count++] = (struct bfc_event){
                .what = bfc_event_what(BFC_EVENT_FREE, place->pool, us), .address = place->address};
        place->in_use = place->listed;
        place->known = true;
    }
    return count;
}

#include "tools/bfcstat/snapshot/last_calls.h"

#include <stdlib.h>
#include <string.h>

static void note_block(struct calls *calls, uint64_t address, uint64_t bytes, uint32_t site) {
    struct known_block *block = address_table_put(&calls->blocks, address, sizeof *block);
    if (!block) {
        calls->failed = true;
        return;
    }
    *block = (struct known_block){.address = address, .bytes = bytes, .site = site};
}

static void resolve_call(struct calls *calls, struct call *call) {
    const struct bfc_event *event = &call->event;
    enum bfc_event_kind kind = bfc_event_kind_of(event->what);
    call->known = true;
    if (kind == BFC_EVENT_ALLOCATE)
        note_block(calls, event->address, event->bytes, call->site);
    if (kind != BFC_EVENT_FREE)
        return;
    struct known_block *block = address_table_find(&calls->blocks, event->address);
    call->known = block && block->bytes;
    calls->untold += !call->known;
    if (!call->known)
        return;
    call->event.bytes = block->bytes;
    call->site = block->site;
    block->bytes = 0;
}

void calls_begin(struct calls *calls, const struct bfc_job *job, const struct bfc_who *blocks) {
    static const struct bfc_job no_events;
    memset(calls, 0, sizeof *calls);
    new_events_begin(&calls->unseen, job->header.next_event);
    event_order_begin(&calls->order, &no_events, blocks, &no_events);
    for (size_t i = 0; i < job->event_count; i++)
        new_events_take(&calls->unseen, &job->events[i]);
    for (uint64_t i = 0; i < blocks->header.blocks; i++)
        if (blocks->blocks[i].state == BFC_WHO_IN_USE)
            note_block(calls, blocks->blocks[i].start, blocks->blocks[i].requested, 0);
}

void calls_begin_before(struct calls *calls, const struct bfc_job *earlier,
                        const struct bfc_who *blocks, const struct bfc_job *later) {
    memset(calls, 0, sizeof *calls);
    new_events_begin(&calls->unseen, later->header.next_event);
    event_order_begin(&calls->order, earlier, blocks, later);
    calls_add(calls, later);
}

/* Drops the older half of the list of calls. The sizes and sites of blocks that the dropped calls
 * allocated are kept, because later calls may free these blocks. */
static void drop_oldest(struct calls *calls) {
    size_t half = calls->count / 2;
    for (size_t i = 0; i < half; i++)
        resolve_call(calls, &calls->list[i]);
    calls->untold = 0;
    calls->count -= half;
    calls->dropped += half;
    memmove(calls->list, calls->list + half, calls->count * sizeof *calls->list);
}

/* Makes room for one more call. The list grows to twice CALLS_MOST, and then its older half is
 * dropped, so that dropping, which moves the list, is rare. False: no memory. */
static bool call_fits(struct calls *calls) {
    if (calls->count < calls->room)
        return true;
    if (calls->room == 2 * CALLS_MOST) {
        drop_oldest(calls);
        return true;
    }
    size_t room = calls->room ? calls->room * 2 : BFC_EVENTS;
    room = room < 2 * CALLS_MOST ? room : 2 * CALLS_MOST;
    struct call *list = realloc(calls->list, room * sizeof *list);
    calls->failed |= !list;
    if (!list)
        return false;
    calls->list = list;
    calls->room = room;
    return true;
}

static void take_round(struct calls *calls, bool last) {
    size_t count = event_order_round(&calls->order, last);
    for (size_t i = 0; i < count; i++)
        if (call_fits(calls))
            calls->list[calls->count++] = (struct call){.event = calls->order.ordered[i]};
}

void calls_add(struct calls *calls, const struct bfc_job *job) {
    uint64_t lost = calls->unseen.lost;
    for (size_t i = 0; i < job->event_count; i++)
        if (new_events_take(&calls->unseen, &job->events[i]))
            event_order_add(&calls->order, &job->events[i]);
    if (calls->unseen.lost != lost)
        event_order_forget(&calls->order);
    take_round(calls, false);
}

static int by_event(const void *left, const void *right) {
    uint64_t a = ((const struct bfc_who_mark *)left)->of;
    uint64_t b = ((const struct bfc_who_mark *)right)->of;
    return a < b ? -1 : a > b;
}

static void find_sites(struct calls *calls, const struct bfc_who *who) {
    size_t count = who->header.recent;
    struct bfc_who_mark *marks = malloc((count + 1) * sizeof *marks);
    calls->failed |= !marks;
    if (!marks)
        return;
    for (size_t n = 0; n < count; n++)
        marks[n] = who->recent[n];
    qsort(marks, count, sizeof *marks, by_event);
    for (size_t n = 0; n < calls->count; n++) {
        const struct bfc_who_mark sought = {.of = calls->list[n].event.stamp - 1};
        const struct bfc_who_mark *mark = bsearch(&sought, marks, count, sizeof *marks, by_event);
        calls->list[n].site = mark ? (uint32_t)mark->site : 0;
    }
    free(marks);
}

void calls_finish(struct calls *calls, const struct bfc_who *who) {
    take_round(calls, true);
    if (!calls->count)
        return;
    size_t surplus = calls->count > CALLS_MOST ? calls->count - CALLS_MOST : 0;
    find_sites(calls, who);
    for (size_t i = 0; i < calls->count; i++) {
        calls->untold = i == surplus ? 0 : calls->untold;
        resolve_call(calls, &calls->list[i]);
    }
    calls->count -= surplus;
    calls->dropped += surplus;
    memmove(calls->list, calls->list + surplus, calls->count * sizeof *calls->list);
}

void calls_free(struct calls *calls) {
    free(calls->list);
    address_table_free(&calls->blocks);
    event_order_free(&calls->order);
    memset(calls, 0, sizeof *calls);
}

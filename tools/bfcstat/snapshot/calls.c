/* The last calls. */
#include "tools/bfcstat/snapshot/calls.h"

#include <stdlib.h>
#include <string.h>

/* ---- blocks by their address ---- */

static struct known_block *slot_of(struct known_block *blocks, size_t slots, uint64_t address) {
    uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(hash >> 20) & (slots - 1);
    while (blocks[i].address && blocks[i].address != address)
        i = (i + 1) & (slots - 1);
    return &blocks[i];
}

static bool make_room(struct calls *calls) {
    size_t slots = calls->block_slots ? calls->block_slots * 2 : 4096;
    struct known_block *blocks = calloc(slots, sizeof *blocks);
    if (!blocks)
        return false;
    for (size_t i = 0; i < calls->block_slots; i++)
        if (calls->blocks[i].address)
            *slot_of(blocks, slots, calls->blocks[i].address) = calls->blocks[i];
    free(calls->blocks);
    calls->blocks = blocks;
    calls->block_slots = slots;
    return true;
}

static void know(struct calls *calls, uint64_t address, uint64_t bytes, uint32_t site) {
    if (2 * calls->block_count >= calls->block_slots && !make_room(calls)) {
        calls->failed = true;
        return;
    }
    struct known_block *block = slot_of(calls->blocks, calls->block_slots, address);
    calls->block_count += block->address == 0;
    *block = (struct known_block){.address = address, .bytes = bytes, .site = site};
}

static void resolve(struct calls *calls, struct call *call) {
    const struct bfc_event *event = &call->event;
    enum bfc_event_kind kind = bfc_event_kind_of(event->what);
    call->known = true;
    if (kind == BFC_EVENT_ALLOCATE)
        know(calls, event->address, event->bytes, call->site);
    if (kind != BFC_EVENT_FREE)
        return;
    struct known_block *block =
        calls->block_slots ? slot_of(calls->blocks, calls->block_slots, event->address) : NULL;
    call->known = block && block->bytes;
    calls->untold += !call->known;
    if (!call->known)
        return;
    call->event.bytes = block->bytes;
    call->site = block->site;
    block->bytes = 0;
}

/* ---- the list ---- */

void calls_begin(struct calls *calls, const struct bfc_job *job, const struct bfc_who *blocks) {
    *calls = (struct calls){0};
    new_events_begin(&calls->unseen, job->header.next_event);
    for (size_t i = 0; blocks && i < job->event_count; i++)
        new_events_take(&calls->unseen, &job->events[i]);
    for (uint64_t i = 0; blocks && i < blocks->header.blocks; i++)
        if (blocks->blocks[i].state == BFC_WHO_IN_USE)
            know(calls, blocks->blocks[i].start, blocks->blocks[i].requested, 0);
}

static int by_number(const void *left, const void *right) {
    uint64_t a = ((const struct call *)left)->event.stamp;
    uint64_t b = ((const struct call *)right)->event.stamp;
    return a < b ? -1 : a > b;
}

/* Half of them at once, oldest first; what they tell of blocks is kept. */
static void drop_oldest(struct calls *calls) {
    size_t half = calls->count / 2;
    qsort(calls->list, calls->count, sizeof *calls->list, by_number);
    for (size_t i = 0; i < half; i++)
        resolve(calls, &calls->list[i]);
    calls->untold = 0;
    calls->count -= half;
    calls->dropped += half;
    memmove(calls->list, calls->list + half, calls->count * sizeof *calls->list);
}

/* Room for twice as many as are kept, so that dropping is rare. */
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

void calls_add(struct calls *calls, const struct bfc_job *job) {
    for (size_t i = 0; i < job->event_count; i++)
        if (new_events_take(&calls->unseen, &job->events[i]) && call_fits(calls))
            calls->list[calls->count++] = (struct call){.event = job->events[i]};
}

static int by_event(const void *left, const void *right) {
    uint64_t a = ((const struct bfc_who_mark *)left)->of;
    uint64_t b = ((const struct bfc_who_mark *)right)->of;
    return a < b ? -1 : a > b;
}

static void find_sites(struct calls *calls, const struct bfc_who *who) {
    size_t count = who->header.recent, i = 0;
    struct bfc_who_mark *marks = malloc((count + 1) * sizeof *marks);
    calls->failed |= !marks;
    if (!marks)
        return;
    for (size_t n = 0; n < count; n++)
        marks[n] = who->recent[n];
    qsort(marks, count, sizeof *marks, by_event);
    for (size_t n = 0; n < calls->count; n++) {
        uint64_t number = calls->list[n].event.stamp - 1;
        while (i < count && marks[i].of < number)
            i++;
        if (i < count && marks[i].of == number)
            calls->list[n].site = (uint32_t)marks[i].site;
    }
    free(marks);
}

void calls_finish(struct calls *calls, const struct bfc_who *who) {
    if (!calls->count)
        return;
    size_t surplus = calls->count > CALLS_MOST ? calls->count - CALLS_MOST : 0;
    qsort(calls->list, calls->count, sizeof *calls->list, by_number);
    find_sites(calls, who);
    for (size_t i = 0; i < calls->count; i++) {
        calls->untold = i == surplus ? 0 : calls->untold;
        resolve(calls, &calls->list[i]);
    }
    calls->count -= surplus;
    calls->dropped += surplus;
    memmove(calls->list, calls->list + surplus, calls->count * sizeof *calls->list);
}

void calls_free(struct calls *calls) {
    free(calls->list);
    free(calls->blocks);
    *calls = (struct calls){0};
}

/* The call stacks of a trace. */
#include "interpose/features/record/record.h"

#include <string.h>

#include "base/atomic.h"
#include "base/numbers.h"

static struct bfc_stack_tables (*source)(void); /* atomic: returns the tables of the call stacks */
static struct bfc_trace_counts taken;           /* how much of the tables the trace has already */

void bfc_trace_stacks_from(struct bfc_stack_tables (*now)(void)) {
    bfc_store_release(&source, now);
}

static size_t put_bytes(char *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return bytes;
}

/* Copies sites without their sums, which go on changing and so mean nothing in a trace. */
static size_t put_sites(char *to, const struct bfc_who_site *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct bfc_who_site site = {.first = from[i].first,
                                    .native = from[i].native,
                                    .python = from[i].python,
                                    .tag = from[i].tag};
        put_bytes(to + i * sizeof site, &site, sizeof site);
    }
    return count * sizeof *from;
}

/* Returns how many new elements of `size` bytes go into the next block: each of the four tables
 * gets at most an eighth of the room. */
static uint32_t next_part(uint32_t known, uint32_t had, size_t room, size_t size) {
    return (uint32_t)bfc_min(known - had, room / 8 / size);
}

size_t bfc_trace_take_stacks(char *to, size_t room) {
    struct bfc_stack_tables (*ask)(void) = bfc_load_acquire(&source);
    if (!ask)
        return 0;
    const struct bfc_stack_tables now = ask();
    const struct bfc_trace_counts part = {
        .sites = next_part(now.known.sites, taken.sites, room, sizeof *now.sites),
        .frames = next_part(now.known.frames, taken.frames, room, sizeof *now.frames),
        .objects = next_part(now.known.objects, taken.objects, room, sizeof *now.objects),
        .texts = next_part(now.known.texts, taken.texts, room, 1),
        .executable = now.known.executable};
    if (!part.sites && !part.frames && !part.objects && !part.texts)
        return 0;
    size_t size = put_bytes(to, &part, sizeof part);
    size += put_sites(to + size, now.sites + taken.sites, part.sites);
    size += put_bytes(to + size, now.frames + taken.frames, part.frames * sizeof *now.frames);
    size += put_bytes(to + size, now.objects + taken.objects, part.objects * sizeof *now.objects);
    size += put_bytes(to + size, now.texts + taken.texts, part.texts);
    taken.sites += part.sites;
    taken.frames += part.frames;
    taken.objects += part.objects;
    taken.texts += part.texts;
    return size;
}

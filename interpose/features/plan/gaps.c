/* Finds gaps between planned blocks by one pass over the blocks in the order of their offsets. */
#include "interpose/features/plan/gaps.h"

#include <string.h>

#include "base/atomic.h"

/* The lifetime of a planned block, and the loop of its plan. */
struct stay {
    uint64_t birth, death;  /* when the block is allocated and freed, in ticks of the plan
                               (layout/plan.h) */
    uint64_t begin, length; /* when the loop's first repetition begins and how long it is, in ticks;
                               length 0: the plan has no loop */
};

static bool in_period(const struct stay *stay, uint64_t birth) {
    return stay->length && birth >= stay->begin;
}

/* Returns how many ticks pass from the time `from` of a repetition of the loop to the next time
 * `to`, in the same repetition or the next. */
static uint64_t ticks_to(const struct stay *stay, uint64_t from, uint64_t to) {
    return to >= from ? to - from : stay->length - (from - to);
}

/* Whether the planned block of this lifetime and another one are live at the same time in some
 * repetition of the loop. */
static bool is_near_in_time(const struct stay *stay, const struct bfc_plan_event *other) {
    if (!in_period(stay, stay->birth))
        return other->birth < stay->death && stay->birth < other->death;
    /* A block that is allocated before the loop may live through all its repetitions. */
    if (!in_period(stay, other->birth))
        return other->death >= stay->begin + stay->length;
    return ticks_to(stay, stay->birth, other->birth) < stay->death - stay->birth ||
           ticks_to(stay, other->birth, stay->birth) < other->death - other->birth;
}

/* Adds a gap. Only the BFC_GAPS largest are kept, in ascending order of size. */
static void add_gap(struct bfc_gaps *gaps, struct bfc_gap gap) {
    uint32_t i = 0;
    if (gaps->count < BFC_GAPS)
        i = gaps->count++;
    else if (gaps->list[0].size >= gap.size)
        return;
    for (; i + 1 < gaps->count && gaps->list[i + 1].size < gap.size; i++)
        gaps->list[i] = gaps->list[i + 1];
    for (; i > 0 && gaps->list[i - 1].size > gap.size; i--)
        gaps->list[i] = gaps->list[i - 1];
    gaps->list[i] = gap;
}

static struct stay stay_of(const struct bfc_plan *plan, const struct bfc_slot *slot) {
    const struct bfc_plan_header *header = plan->header;
    const struct bfc_plan_event *event = &plan->events[slot->event];
    struct stay stay = {.birth = event->birth, .death = event->death};
    if (header->period) {
        stay.begin = header->period_birth;
        stay.length = header->period_ticks;
    }
    return stay;
}

void bfc_gaps_find(struct bfc_gaps *gaps, const struct bfc_places *places,
                   const struct bfc_plan *plan, const struct bfc_slot *slot) {
    struct stay stay = stay_of(plan, slot);
    struct bfc_gaps found = {.count = 0};
    uint64_t top = 0, before = 0;
    for (uint32_t i = 0; i < places->count; i++) {
        const struct bfc_slot *other = places->all[i];
        if (other == slot || !is_near_in_time(&stay, &plan->events[other->event]))
            continue;
        if (other->offset > top)
            add_gap(&found, (struct bfc_gap){top, other->offset - top, before});
        if (other->offset + other->size > top) {
            top = other->offset + other->size;
            before = other->offset;
        }
    }
    if (places->bytes > top)
        add_gap(&found, (struct bfc_gap){top, places->bytes - top, before});
    memcpy(gaps->list, found.list, sizeof gaps->list);
    gaps->count = found.count;
    bfc_store_release(&gaps->state, (uint32_t)BFC_GAPS_KNOWN);
}

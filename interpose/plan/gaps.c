/* Gaps, by one pass over the planned blocks in the order of their places. */
#include "interpose/plan/gaps.h"

#include "base/numbers.h"

/* What the new block is compared with. */
struct stay {
    const struct bfc_course *course;
    const struct bfc_slot *slot; /* in whose stead it comes */
    uint64_t birth, death;       /* ticks */
    uint64_t begin, length;      /* ticks: of the period; length 0: there is none */
    uint32_t round;
};

static bool in_period(const struct stay *stay, uint64_t birth) {
    return stay->length && birth >= stay->begin;
}

/* From one moment of the period on to another, round the ring. */
static uint64_t ticks_to(const struct stay *stay, uint64_t from, uint64_t to) {
    return to >= from ? (to - from) % stay->length
                      : (stay->length - (from - to) % stay->length) % stay->length;
}

/* By the plan. */
static bool is_near_in_time(const struct stay *stay, const struct bfc_plan_event *other) {
    if (!in_period(stay, stay->birth))
        return other->birth < stay->death && stay->birth < other->death;
    if (!in_period(stay, other->birth)) /* kept from the prefix on */
        return other->death >= stay->begin + stay->length;
    return ticks_to(stay, stay->birth, other->birth) < stay->death - stay->birth ||
           ticks_to(stay, other->birth, stay->birth) < other->death - other->birth;
}

/* Of the same thread, planned to live now, but it did not come, or had to go elsewhere. */
static bool is_absent(const struct stay *stay, const struct bfc_placed *placed) {
    const struct bfc_slot *slot = placed->slot;
    if (placed->course != stay->course || slot->event >= stay->slot->event)
        return false;
    return slot->placed != stay->round;
}

static void add(uint64_t offsets[BFC_GAPS], uint64_t sizes[BFC_GAPS], unsigned *count,
                uint64_t offset, uint64_t size) {
    unsigned i = *count < BFC_GAPS ? (*count)++ : BFC_GAPS - 1;
    if (i == BFC_GAPS - 1 && *count == BFC_GAPS && sizes[i] && sizes[i] <= size)
        return;
    for (; i > 0 && sizes[i - 1] > size; i--) {
        sizes[i] = sizes[i - 1];
        offsets[i] = offsets[i - 1];
    }
    sizes[i] = size;
    offsets[i] = offset;
}

unsigned bfc_gaps_find(const struct bfc_places *places, const struct bfc_course *course,
                       const struct bfc_match *match, uint64_t size, uint64_t offsets[BFC_GAPS]) {
    const struct bfc_plan_header *header = course->plan->header;
    const struct bfc_plan_event *events = course->plan->events;
    const struct bfc_slot *slot = &course->slots[match->at];
    const struct bfc_plan_event *event = &events[slot->event];
    struct stay stay = {.course = course,
                        .slot = slot,
                        .birth = event->birth,
                        .death = event->death,
                        .round = course->round + match->next_round};
    if (header->period) {
        stay.begin = header->period_birth;
        stay.length = header->period_ticks;
    }
    uint64_t sizes[BFC_GAPS] = {0}, top = 0;
    uint64_t align = size < BFC_PLAN_LARGE ? BFC_PLAN_SMALL : BFC_PLAN_LARGE;
    unsigned count = 0;
    for (uint32_t i = 0; i <= places->count; i++) {
        const struct bfc_placed *placed = i < places->count ? &places->all[i] : NULL;
        if (placed && (placed->slot == slot || is_absent(&stay, placed) ||
                       !is_near_in_time(&stay, &events[placed->slot->event])))
            continue;
        uint64_t end = placed ? placed->slot->offset : places->bytes;
        uint64_t start = (top + align - 1) & ~(align - 1);
        if (end > start && end - start >= size)
            add(offsets, sizes, &count, start, end - start);
        if (placed)
            top = bfc_max(top, placed->slot->offset + placed->slot->size);
    }
    return count;
}

/* Checking the bytes of a plan. */
#include <stdio.h>

#include "interpose/features/plan/followed_plan.h"

enum { ARENAS_MOST = 256 };
#define MEMORY_MOST ((uint64_t)1 << 48) /* bytes of all arenas */

static bool refuse_plan(char why[BFC_PLAN_WHY], const char *what) {
    snprintf(why, BFC_PLAN_WHY, "%s", what);
    return false;
}

static bool refuse_event(char why[BFC_PLAN_WHY], uint32_t event, const char *what) {
    snprintf(why, BFC_PLAN_WHY, "it contradicts itself: event %u %s", event, what);
    return false;
}

static bool check_start(const struct bfc_plan_header *header, uint64_t size,
                        char why[BFC_PLAN_WHY]) {
    if (size < sizeof *header || memcmp(header->magic, BFC_PLAN_MAGIC, sizeof header->magic) != 0)
        return refuse_plan(why, "it is not a plan of bfcplan");
    if (header->byte_order != BFC_PLAN_BYTE_ORDER)
        return refuse_plan(why, "it was written on a machine of another byte order");
    if (header->version == BFC_PLAN_VERSION)
        return true;
    snprintf(why, BFC_PLAN_WHY, "its version is %u, only %d is accepted: plan it anew",
             header->version, BFC_PLAN_VERSION);
    return false;
}

static bool is_inside(const struct bfc_plan_header *header, uint64_t at, uint64_t count,
                      uint64_t each) {
    return at % BFC_PLAN_TABLE_ALIGN == 0 && at >= sizeof *header && at <= header->file_bytes &&
           count <= (header->file_bytes - at) / each;
}

static bool check_header(const struct bfc_plan_header *header, uint64_t size,
                         char why[BFC_PLAN_WHY]) {
    if (header->file_bytes > size)
        return refuse_plan(why, "its end is missing");
    if (header->file_bytes != size || header->checksum != bfc_plan_checksum(header, size))
        return refuse_plan(why, "it is damaged: the checksum is wrong");
    if (!(header->flags & BFC_PLAN_FROM_TRACE))
        return refuse_plan(why, "it was made of a list of lifetimes: accepted are plans of a trace "
                                "(BFC_RECORD)");
    if (!is_inside(header, header->arenas_at, header->arenas, sizeof(struct bfc_plan_arena)) ||
        !is_inside(header, header->events_at, header->events, sizeof(struct bfc_plan_event)) ||
        !is_inside(header, header->anchors_at, header->anchors, sizeof(struct bfc_plan_anchor)))
        return refuse_plan(why, "it contradicts itself: a table lies outside the file");
    if ((uint64_t)header->prefix + header->period != header->events ||
        header->arenas > ARENAS_MOST || (header->period && !header->period_ticks))
        return refuse_plan(why, "it contradicts itself: its numbers do not fit together");
    return true;
}

static bool check_arenas(const struct bfc_plan *plan, char why[BFC_PLAN_WHY]) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->header->arenas; i++) {
        if (plan->arenas[i].peak > MEMORY_MOST)
            return refuse_plan(why, "it contradicts itself: an arena is larger than any device");
        sum += plan->arenas[i].peak;
    }
    return sum <= MEMORY_MOST || refuse_plan(why, "its arenas together are larger than any device");
}

static bool is_whole(uint64_t offset, uint64_t size) {
    uint64_t unit = size < BFC_PLAN_LARGE ? BFC_PLAN_SMALL : BFC_PLAN_LARGE;
    return offset % unit == 0 && size % unit == 0;
}

static const char *fault_of(const struct bfc_plan *plan, const struct bfc_plan_event *event) {
    if (event->arena >= plan->header->arenas)
        return "is in an arena that there is not";
    if (event->class_of >= BFC_PLAN_CLASSES)
        return "has a class that there is not";
    if (event->birth >= event->death)
        return "dies before it is born";
    if (event->class_of == BFC_PLAN_UNPLANNED)
        return NULL;
    if (!is_whole(event->offset, event->size))
        return "has a place that the pool does not give";
    uint64_t peak = plan->arenas[event->arena].peak;
    if (event->size > peak || event->offset > peak - event->size)
        return "ends above its arena's peak";
    return NULL;
}

static bool check_events(const struct bfc_plan *plan, char why[BFC_PLAN_WHY]) {
    for (uint32_t i = 0; i < plan->header->events; i++) {
        const char *fault = fault_of(plan, &plan->events[i]);
        if (fault)
            return refuse_event(why, i, fault);
    }
    for (uint32_t i = 0; i < plan->header->anchors; i++)
        if (plan->anchors[i].event >= plan->header->events)
            return refuse_plan(why, "it contradicts itself: an anchor is of no event");
    switch (bfc_plan_find_overlap(plan)) {
    case BFC_OVERLAP_FOUND:
        return refuse_plan(why, "it contradicts itself: two blocks are in one place at a time");
    case BFC_OVERLAP_NO_HOST_MEMORY:
        return refuse_plan(why, "the host has no memory to check it");
    case BFC_OVERLAP_NONE:
        break;
    }
    return true;
}

bool bfc_plan_read(struct bfc_plan *plan, const void *bytes, uint64_t size,
                   char why[BFC_PLAN_WHY]) {
    const struct bfc_plan_header *header = bytes;
    if (!check_start(header, size, why) || !check_header(header, size, why))
        return false;
    const unsigned char *start = bytes;
    *plan = (struct bfc_plan){.header = header,
                              .arenas = (const void *)(start + header->arenas_at),
                              .events = (const void *)(start + header->events_at),
                              .anchors = (const void *)(start + header->anchors_at)};
    return check_arenas(plan, why) && check_events(plan, why);
}

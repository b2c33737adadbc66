/* Checking the bytes of a plan: what any reader asks of them, then what a pool does. */
#include "interpose/features/plan/followed_plan.h"
#include "planner/image/image.h"

enum { ARENAS_MOST = 256 };
#define MEMORY_MOST ((uint64_t)1 << 48) /* bytes of all arenas */

static bool check_header(const struct bfc_plan_header *header, struct plan_error *error) {
    if (!(header->flags & BFC_PLAN_FROM_TRACE))
        return plan_fail(error, "plan: header: made of a list of lifetimes: accepted are plans of "
                                "a trace (BFC_RECORD)");
    if (header->arenas > ARENAS_MOST || (header->period && !header->period_ticks))
        return plan_fail(error, "plan: header: its numbers contradict each other");
    return true;
}

static bool check_arenas(const struct bfc_plan *plan, struct plan_error *error) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->header->arenas; i++) {
        if (plan->arenas[i].peak > MEMORY_MOST)
            return plan_fail(error, "plan: arena %u is larger than any device", i);
        sum += plan->arenas[i].peak;
    }
    return sum <= MEMORY_MOST ||
           plan_fail(error, "plan: its arenas together are larger than any device");
}

static bool is_whole(uint64_t offset, uint64_t size) {
    uint64_t unit = size < BFC_PLAN_LARGE ? BFC_PLAN_SMALL : BFC_PLAN_LARGE;
    return offset % unit == 0 && size % unit == 0;
}

static bool check_places(const struct bfc_plan *plan, struct plan_error *error) {
    for (uint32_t i = 0; i < plan->header->events; i++) {
        const struct bfc_plan_event *event = &plan->events[i];
        if (event->class_of != BFC_PLAN_UNPLANNED && !is_whole(event->offset, event->size))
            return plan_fail(error, "plan: event %u: it has a place that the pool does not give",
                             i);
    }
    return bfc_plan_is_apart(plan, error);
}

bool bfc_plan_read(struct bfc_plan *plan, struct file_text *text, struct plan_error *error) {
    struct plan_file file;
    if (!plan_parse(&file, text, "plan", error))
        return false;
    *plan = (struct bfc_plan){.text = file.text,
                              .header = (const void *)file.text.bytes,
                              .arenas = file.arenas,
                              .events = file.events,
                              .anchors = file.anchors};
    if (check_header(plan->header, error) && check_arenas(plan, error) && check_places(plan, error))
        return true;
    plan_free(&file);
    return false;
}

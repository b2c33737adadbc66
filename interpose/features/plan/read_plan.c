/* Checks the bytes of a plan: whether they are a well-formed plan file, then whether a pool can
 * follow that plan. */
#include "interpose/features/plan/followed_plan.h"
#include "planner/image/image.h"
#include "planner/model/validate.h"

enum { ARENAS_MOST = 256 };
#define MEMORY_MOST ((uint64_t)1 << 48) /* the most bytes that a plan may need in all */

/* A plan's blocks in the form that the validator takes: a row for each allocation, and behind those
 * a second row for each block that is still in use when its repetition of the loop ends. The second
 * row is the part of that block's life that falls into the next repetition. */
struct rows {
    struct lifetimes lifetimes;
    uint64_t *offsets, *peaks;
};

static bool make_rows(struct rows *rows, const struct bfc_plan_header *header) {
    size_t most = 2 * (size_t)header->events + 1;
    *rows =
        (struct rows){.lifetimes = {.path = "plan", .rows = malloc(most * sizeof(struct lifetime))},
                      .offsets = malloc(most * sizeof(uint64_t)),
                      .peaks = calloc((size_t)header->arenas + 1, sizeof(uint64_t))};
    rows->lifetimes.spaces.count = header->arenas;
    return rows->lifetimes.rows && rows->offsets && rows->peaks;
}

static void add_row(struct rows *rows, const struct bfc_plan_event *event, uint64_t birth,
                    uint64_t death) {
    bool placed = event->class_of != BFC_PLAN_UNPLANNED && birth < death;
    rows->offsets[rows->lifetimes.count] = event->offset;
    rows->lifetimes.rows[rows->lifetimes.count++] =
        (struct lifetime){.birth = birth,
                          .death = death,
                          .size = placed ? event->size : 0,
                          .pin = NOT_PINNED,
                          .alias = ROW_NONE,
                          .group = ROW_NONE,
                          .space = event->arena,
                          .stream = ROW_NONE};
}

static bool crosses_end(const struct bfc_plan *plan, uint32_t event) {
    const struct bfc_plan_header *header = plan->header;
    return event >= header->prefix && header->period &&
           plan->events[event].death > header->period_birth + header->period_ticks;
}

/* Each repetition of the loop has the same blocks. So a block that outlives its repetition is added
 * twice to one repetition: from its birth to the repetition's end, and from the repetition's
 * beginning on, as the block that is left over from the repetition before. */
static void add_rows(struct rows *rows, const struct bfc_plan *plan) {
    const struct bfc_plan_header *header = plan->header;
    const struct bfc_plan_event *events = plan->events;
    uint64_t end = header->period_birth + header->period_ticks;
    for (uint32_t i = 0; i < header->events; i++)
        add_row(rows, &events[i], events[i].birth, crosses_end(plan, i) ? end : events[i].death);
    for (uint32_t i = header->prefix; i < header->events; i++)
        if (crosses_end(plan, i))
            add_row(rows, &events[i], header->period_birth, events[i].death - header->period_ticks);
}

bool bfc_plan_is_apart(const struct bfc_plan *plan, struct plan_error *error) {
    struct rows rows;
    bool apart = make_rows(&rows, plan->header) || plan_fail_memory(error);
    if (apart) {
        add_rows(&rows, plan);
        apart = validate(&rows.lifetimes, rows.offsets, 1, 0, rows.peaks, error);
    }
    free(rows.lifetimes.rows);
    free(rows.offsets);
    free(rows.peaks);
    return apart;
}

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

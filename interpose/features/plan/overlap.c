/* Has the planner's validator look for blocks of a plan that lie in one place at a time. */
#include "interpose/features/plan/followed_plan.h"
#include "planner/model/validate.h"

/* Rows for the validator: one for each event, and behind them the second halves of those that cross
 * the end of their period. */
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

/* A block that outlives its period overlaps with the beginning of the next one, which looks the
 * same. */
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

#include "interpose/features/plan/learn/learned_loops.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "interpose/config/log.h"
#include "planner/period/align.h"
#include "planner/period/usual.h"

/* A loop is recognised if of the last COMPARED allocations at most one in DIFFERENT has another
 * size than in the loop. */
enum { COMPARED = 32, DIFFERENT = 4 };

static const struct bfc_plan_event *event_of(const struct bfc_learned_loop *learned_loop,
                                             uint32_t event) {
    return &learned_loop->plan.events[learned_loop->plan.header->prefix + event];
}

/* Counts how many of the last allocations have the sizes that come before `event` in the loop; 0:
 * too few to recognise the loop. */
static uint32_t count_same(const struct bfc_learned_loop *learned_loop, const struct events *events,
                           uint32_t event) {
    uint32_t period = learned_loop->plan.header->period, same = 0;
    for (uint32_t i = 1; i <= COMPARED; i++) {
        event = event ? event - 1 : period - 1;
        same += events->allocations[events->allocations_count - i].bytes ==
                event_of(learned_loop, event)->size;
        if (i - same > COMPARED / DIFFERENT)
            return 0;
    }
    return same;
}

static struct bfc_position recognise_as_planned(const struct bfc_learned_loops *learned_loops,
                                                const struct events *events) {
    struct bfc_position position = {.learned_loop = NULL};
    uint32_t most = 0;
    for (unsigned i = 0; i < learned_loops->count; i++) {
        if (learned_loops->list[i] == learned_loops->avoided)
            continue;
        for (uint32_t e = 0; e < learned_loops->list[i]->plan.header->period && most < COMPARED;
             e++) {
            uint32_t same = count_same(learned_loops->list[i], events, e);
            if (same > most) {
                most = same;
                position = (struct bfc_position){learned_loops->list[i], e};
            }
        }
    }
    return position;
}

/* The program may run a loop with allocations missing, or with others between the loop's own. To
 * recognise that, the last ALIGNED allocations are aligned with the loop. Alignments are tried that
 * end at an event of the loop where FIRST_SAME of the last FIRST allocations have the loop's sizes,
 * at most TRIED of them. The loop is recognised if ALIGNED_SAME of the ALIGNED allocations
 * match. */
enum { ALIGNED = 64, ALIGNED_SAME = 45, FIRST = 3, FIRST_SAME = 2, TRIED = 256 };

/* Returns the loop's sizes backwards, twice in a row, so that every rotation of the loop is a part
 * of them. NULL: no host memory. */
static uint64_t *make_sizes(const struct bfc_learned_loop *learned_loop) {
    uint32_t period = learned_loop->plan.header->period;
    uint64_t *sizes = malloc(2 * (size_t)period * sizeof *sizes);
    for (uint32_t i = 0; sizes && i < 2 * period; i++)
        sizes[i] = event_of(learned_loop, period - 1 - i % period)->size;
    return sizes;
}

static bool may_be_at(const uint64_t *sizes, uint32_t period, const uint64_t *last) {
    unsigned same = 0;
    for (uint32_t i = 0; i < FIRST; i++)
        same += sizes[i % period] == last[i];
    return same >= FIRST_SAME;
}

/* Counts how many of the last ALIGNED allocations the best alignment with the loop matches, and
 * sets `*event` to the event of the loop that comes next. */
static uint32_t find_best(const struct bfc_learned_loop *learned_loop, const uint64_t *last,
                          uint32_t *event) {
    uint32_t places[ALIGNED], most = 0, period = learned_loop->plan.header->period, tries = TRIED;
    struct alignment alignment = {.places = places};
    uint64_t *sizes = make_sizes(learned_loop);
    for (uint32_t start = 0; sizes && tries > 0 && start < period; start++) {
        const struct token_loop loop = {.tokens = sizes + start, .count = period};
        if (!may_be_at(loop.tokens, period, last))
            continue;
        align(&alignment, last, ALIGNED, &loop);
        if (alignment.matched > most) {
            most = alignment.matched;
            *event = start ? period - start : 0;
        }
        tries--;
    }
    free(sizes);
    return most;
}

static struct bfc_position recognise_changed(const struct bfc_learned_loops *learned_loops,
                                             const struct events *events) {
    struct bfc_position position = {.learned_loop = NULL};
    uint64_t last[ALIGNED];
    uint32_t most = ALIGNED_SAME - 1, event = 0;
    for (uint32_t i = 0; i < ALIGNED; i++)
        last[i] = events->allocations[events->allocations_count - 1 - i].bytes;
    for (unsigned i = 0; i < learned_loops->count; i++) {
        uint32_t same = learned_loops->list[i] == learned_loops->avoided
                            ? 0
                            : find_best(learned_loops->list[i], last, &event);
        if (same > most) {
            most = same;
            position = (struct bfc_position){learned_loops->list[i], event};
        }
    }
    return position;
}

struct bfc_position bfc_learned_loops_recognise(const struct bfc_learned_loops *learned_loops,
                                                const struct events *events) {
    struct bfc_position position = {.learned_loop = NULL};
    if (events->allocations_count >= COMPARED)
        position = recognise_as_planned(learned_loops, events);
    if (!position.learned_loop && events->allocations_count >= ALIGNED)
        position = recognise_changed(learned_loops, events);
    return position;
}

static struct bfc_learned_loop *make_learned_loop(struct loop_result *made) {
    struct plan_error error = {.text = "no host memory"};
    struct bfc_learned_loop *learned_loop = calloc(1, sizeof *learned_loop);
    if (learned_loop && bfc_plan_read(&learned_loop->plan, &made->plan, &error)) {
        learned_loop->plan.automatic = true;
        learned_loop->bound = made->bound;
        learned_loop->peak = made->peak;
        return learned_loop;
    }
    bfc_log(BFC_LOG_WARN, "BFC_PLAN=auto: a plan is not followed: %s", error.text);
    free(learned_loop);
    return NULL;
}

static struct bfc_learned_loop *plan_loop(const struct events *events, const struct period *period,
                                          const struct loop_limits *limits) {
    struct plan_error error;
    struct loop_result made;
    if (loop_plan(&made, events, period, limits, &error)) {
        struct bfc_learned_loop *learned_loop = make_learned_loop(&made);
        file_free(&made.plan); /* frees the plan's bytes, unless learned_loop has them now */
        return learned_loop;
    }
    bfc_log(BFC_LOG_DEBUG, "BFC_PLAN=auto: a loop of %u allocation%s is not planned: %s",
            period->length, bfc_plural(period->length), error.text);
    return NULL;
}

/* Keeps the list of the allocations before the loop. Only a plan for the program's next run needs
 * it, so it is left out if the host has no memory. */
static void keep_lead(struct bfc_learned_loop *learned_loop, const struct events *events,
                      const struct period *period) {
    struct plan_lead_event *list = calloc((size_t)period->prefix + 1, sizeof *list);
    if (!list)
        return;
    for (uint32_t i = 0; i < period->prefix; i++)
        list[i] = (struct plan_lead_event){.bytes = events->allocations[i].bytes,
                                           .thread = events->allocations[i].thread};
    learned_loop->lead = (struct plan_lead){list, period->prefix};
    learned_loop->plan.lead = &learned_loop->lead;
}

static void log_learned(const struct bfc_learned_loop *learned_loop, const struct period *period) {
    bfc_log(BFC_LOG_INFO,
            "BFC_PLAN=auto: planned a loop of %u allocation%s%s: %s, where %s are alive at a "
            "time",
            period->length, bfc_plural(period->length), period->jitter ? ", whose sizes vary" : "",
            BFC_BYTES(learned_loop->peak), BFC_BYTES(learned_loop->bound));
}

/* A loop with random sizes is planned only after this many repetitions, since they must show which
 * sizes are usual. */
enum { TELLING_REPETITIONS = 6 };

/* A sequence of events, the loop that was found in it, and the plan of that loop. */
struct found {
    const struct events *events;
    struct period period; /* length 0: no loop was found */
    struct bfc_learned_loop *learned_loop;
};

static bool find_loop(struct found *found, const struct events *events, uint64_t wanted) {
    struct plan_error error;
    *found = (struct found){.events = events};
    return period_find_current(&found->period, events, &error) && found->period.length > 0 &&
           found->period.prefix_events + found->period.length_events <= wanted;
}

/* Writes into `usual` only those allocations that many repetitions have, and looks there for a
 * loop. */
static struct found find_usual(const struct events *events, struct events *usual,
                               const struct loop_limits *limits) {
    struct plan_error error;
    struct found found = {.learned_loop = NULL};
    if (!limits->same_sizes && usual_find(usual, events, &error) && usual->count > 0 &&
        find_loop(&found, usual, UINT64_MAX))
        found.learned_loop = plan_loop(usual, &found.period, limits);
    return found;
}

/* Looks for a loop in all events, then only in the allocations that many repetitions have. */
static struct found find_learned_loop(const struct events *events, uint64_t wanted,
                                      struct events *usual, const struct loop_limits *limits) {
    struct found exact;
    bool is_there = find_loop(&exact, events, wanted);
    if (is_there && !exact.period.usual)
        exact.learned_loop = plan_loop(events, &exact.period, limits);
    const struct found other = exact.learned_loop ? (struct found){.learned_loop = NULL}
                                                  : find_usual(events, usual, limits);
    if (other.learned_loop)
        return other;
    if (is_there && exact.period.usual && exact.period.repetitions >= TELLING_REPETITIONS)
        exact.learned_loop = plan_loop(events, &exact.period, limits);
    return exact;
}

static struct bfc_position add_loop(struct bfc_learned_loops *learned_loops,
                                    const struct found *found) {
    const struct period *period = &found->period;
    learned_loops->list[learned_loops->count++] = found->learned_loop;
    log_learned(found->learned_loop, period);
    return (struct bfc_position){
        found->learned_loop, (found->events->allocations_count - period->prefix) % period->length};
}

struct bfc_position bfc_learned_loops_learn(struct bfc_learned_loops *learned_loops,
                                            const struct events *events, uint64_t wanted,
                                            bool whole, const struct loop_limits *limits) {
    struct events usual = {.list = NULL};
    struct bfc_position position = {.learned_loop = NULL};
    if (learned_loops->count == BFC_MOST_LEARNED_LOOPS)
        return position;
    const struct found found = find_learned_loop(events, wanted, &usual, limits);
    if (found.learned_loop && whole && found.events == events)
        keep_lead(found.learned_loop, events, &found.period);
    if (found.learned_loop)
        position = add_loop(learned_loops, &found);
    events_free(&usual);
    return position;
}

void bfc_learned_loops_forget(struct bfc_learned_loops *learned_loops) {
    for (unsigned i = 0; i < learned_loops->count; i++) {
        file_free(&learned_loops->list[i]->plan.text);
        free(learned_loops->list[i]->lead.list);
        free(learned_loops->list[i]);
    }
    learned_loops->count = 0;
}

#include "planner/period/period.h"

#include <stdlib.h>

#include "base/mix.h"
#include "planner/common/watch.h"
#include "planner/period/balance.h"

#define LEAST_REPETITIONS 3
/* A repeating part of the stream counts as a loop if a repetition has at least TELLING_LENGTH
 * allocations. If it has fewer, all repetitions together must have at least TELLING_EVENTS events
 * and 1 / TELLING_SHARE of the stream's events, else the stream may repeat by accident. */
#define TELLING_LENGTH 8
#define TELLING_SHARE 4
#define TELLING_EVENTS 12

static uint64_t token_of(const struct events *events, const struct event *event,
                         uint32_t allocations_before, bool with_size) {
    const struct allocation *a = &events->allocations[event->allocation];
    if (event->is_free)
        return bfc_mix_join(0, (uint64_t)(allocations_before - event->allocation) << 1 | 1);
    const uint64_t place = (uint64_t)a->device << 32 | a->thread;
    return bfc_mix_join(bfc_mix_join(0, place), with_size ? a->bytes : 0);
}

/* Writes for each event its token, a number that equal events have in common, in reverse order: the
 * first token is that of the last event. */
static void write_tokens(uint64_t *tokens, const struct events *events, bool with_size) {
    uint32_t before = 0;
    for (uint32_t i = 0; i < events->count; i++) {
        tokens[events->count - 1 - i] = token_of(events, &events->list[i], before, with_size);
        before += !events->list[i].is_free;
    }
}

/* A repeating part of the reversed stream of events: `length` events from index `tail` on. Each
 * event of the part is equal to the one `step` events later, as far as that is in the part too. */
struct run {
    uint32_t tail;
    uint32_t length;
    uint32_t step;
};

/* Finds the longest part of a stream, from its first event on, that consists of at least
 * LEAST_REPETITIONS repetitions; length 0: there is none. Equal events have equal tokens. `border`
 * is working memory for n + 1 numbers. */
static struct run longest_run(const uint64_t *tokens, uint32_t n, uint32_t *border) {
    struct run best = {0, 0, 0};
    uint32_t k = 0;
    border[0] = border[1] = 0;
    for (uint32_t length = 2; length <= n; length++) {
        while (k > 0 && tokens[k] != tokens[length - 1])
            k = border[k];
        k += tokens[k] == tokens[length - 1];
        border[length] = k;
        const uint32_t step = length - k;
        if ((uint64_t)step * LEAST_REPETITIONS <= length)
            best = (struct run){0, length, step};
    }
    return best;
}

static uint32_t allocations_in(const struct events *events, uint32_t from, uint32_t to) {
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++)
        count += !events->list[i].is_free;
    return count;
}

static bool is_convincing(const struct events *events, struct run run) {
    if (run.length == 0)
        return false;
    const uint32_t from = events->count - run.tail - run.length;
    const uint32_t allocations = allocations_in(events, from, from + run.step);
    if (allocations == 0)
        return false;
    return allocations >= TELLING_LENGTH ||
           (run.length >= events->count / TELLING_SHARE && run.length >= TELLING_EVENTS);
}

static uint32_t next_tail(uint32_t tail) {
    return tail == 0 ? 1 : tail * 2;
}

/* The stream is searched at most twice, with the sizes and without them. Each search tries leaving
 * out several numbers of events at the stream's end, and counts a step for each try. */
uint64_t period_steps(const struct events *events) {
    uint64_t tails = 0;
    for (uint32_t tail = 0; tail < events->count / 2 + 1; tail = next_tail(tail))
        tails++;
    return 2 * tails;
}

/* Finds the longest repeating part of the stream. It leaves out 0, 1, 2, 4, … events at the end,
 * because what a program does at its end does not belong to the loop. */
static struct run best_run(const struct events *events, const uint64_t *tokens, uint32_t *border,
                           bool exact) {
    (void)exact;
    struct run best = {0, 0, 0};
    for (uint32_t tail = 0; tail < events->count / 2 + 1; tail = next_tail(tail)) {
        struct run run = longest_run(tokens + tail, events->count - tail, border);
        run.tail = tail;
        watch_add(1);
        if (run.length > best.length && is_convincing(events, run))
            best = run;
    }
    return best;
}

static void describe_run(struct period *period, const struct events *events, struct run run) {
    period->prefix_events = events->count - run.tail - run.length;
    period->length_events = run.step;
    period->repetitions = run.length / run.step;
    period->prefix = allocations_in(events, 0, period->prefix_events);
    period->length =
        allocations_in(events, period->prefix_events, period->prefix_events + run.step);
}

/* Returns the most bytes that are live at any time during repetition `number`, counting only the
 * blocks that this repetition allocates. `bytes` has the size for each allocation of a repetition;
 * if it is NULL, the allocations' own sizes count. */
static double repetition_peak(const struct events *events, const struct period *period,
                              uint32_t number, const uint64_t *bytes) {
    const uint32_t first = period->prefix + number * period->length;
    const uint32_t from = period->prefix_events + number * period->length_events;
    double live = 0, most = 0;
    for (uint32_t i = from; i < from + period->length_events; i++) {
        const struct event *event = &events->list[i];
        if (event->allocation < first)
            continue; /* the event frees a block that an earlier repetition allocated */
        const double size = !bytes ? (double)events->allocations[event->allocation].bytes
                                   : (double)bytes[event->allocation - first];
        live += event->is_free ? -size : size;
        most = live > most ? live : most;
    }
    return most;
}

static uint64_t bytes_of(const struct period *period, const struct events *events,
                         uint32_t repetition, uint32_t slot) {
    return events->allocations[period->prefix + repetition * period->length + slot].bytes;
}

static uint64_t largest_bytes(const struct period *period, const struct events *events,
                              uint32_t slot) {
    uint64_t most = 0;
    for (uint32_t r = 0; r < period->repetitions; r++) {
        const uint64_t bytes = bytes_of(period, events, r, slot);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Returns the size that allocation number `slot` of a repetition has in more than half of the
 * repetitions, found by the majority vote of Boyer and Moore; 0: no size has a majority. */
static uint64_t usual_bytes(const struct period *period, const struct events *events,
                            uint32_t slot) {
    uint64_t candidate = 0;
    uint32_t lead = 0, count = 0;
    for (uint32_t r = 0; r < period->repetitions; r++) {
        const uint64_t bytes = bytes_of(period, events, r, slot);
        if (lead == 0)
            candidate = bytes;
        lead += bytes == candidate ? 1 : (uint32_t)-1;
    }
    for (uint32_t r = 0; r < period->repetitions; r++)
        count += bytes_of(period, events, r, slot) == candidate;
    return count > period->repetitions / 2 ? candidate : 0;
}

uint64_t period_slot_bytes(const struct period *period, const struct events *events,
                           uint32_t slot) {
    const uint64_t usual = period->usual ? usual_bytes(period, events, slot) : 0;
    return usual > 0 ? usual : largest_bytes(period, events, slot);
}

static bool measure_growth(struct period *period, const struct events *events) {
    uint64_t *planned = calloc(period->length, sizeof *planned);
    double sum = 0;
    if (!planned)
        return false;
    for (uint32_t r = 0; r < period->repetitions; r++)
        sum += repetition_peak(events, period, r, NULL);
    for (int usual = 0; usual <= 1 && (!usual || period->growth > PERIOD_LITTLE_GROWTH); usual++) {
        period->usual = usual;
        for (uint32_t i = 0; i < period->length; i++)
            planned[i] = period_slot_bytes(period, events, i);
        const double most = repetition_peak(events, period, 0, planned);
        period->growth = sum > 0 ? most * period->repetitions / sum : 1;
    }
    free(planned);
    return true;
}

typedef struct run (*run_finder)(const struct events *events, const uint64_t *tokens,
                                 uint32_t *border, bool exact);

static bool find_run_with(struct period *period, const struct events *events, run_finder find_run,
                          struct plan_error *error) {
    struct period result = {.growth = 1};
    uint64_t *tokens = malloc(((size_t)events->count + 1) * sizeof *tokens);
    uint32_t *border = malloc(((size_t)events->count + 2) * sizeof *border);
    bool good = tokens && border;
    for (int exact = 1; good && exact >= 0 && result.length == 0; exact--) {
        write_tokens(tokens, events, exact);
        const struct run run = find_run(events, tokens, border, exact);
        if (run.length == 0)
            continue;
        describe_run(&result, events, run);
        result.jitter = !exact;
        good = exact || measure_growth(&result, events);
        if (result.growth > PERIOD_MOST_GROWTH)
            result = (struct period){.growth = result.growth};
    }
    free(tokens);
    free(border);
    if (!good)
        return plan_fail_memory(error);
    *period = result;
    return true;
}

bool period_find(struct period *period, const struct events *events, struct plan_error *error) {
    return find_run_with(period, events, best_run, error);
}

static bool frees_all(const struct events *events, struct run run) {
    uint32_t ends[LEAST_REPETITIONS + 1];
    for (uint32_t i = 0; i <= LEAST_REPETITIONS; i++)
        ends[i] = events->count - (LEAST_REPETITIONS - i) * run.step;
    return is_balanced(events, ends, LEAST_REPETITIONS + 1);
}

/* Finds the repeating part at the end of the stream; length 0: there is none. If sizes are not
 * compared (`exact` is false), many events are equal by chance, so the part must be at least half
 * of the stream. */
static struct run last_run(const struct events *events, const uint64_t *tokens, uint32_t *border,
                           bool exact) {
    const struct run run = longest_run(tokens, events->count, border);
    const bool counts = is_convincing(events, run) && frees_all(events, run) &&
                        (exact || run.length >= events->count / 2);
    return counts ? run : (struct run){0, 0, 0};
}

static bool comes_in(const struct period *period, const struct events *events, uint32_t slot,
                     uint64_t bytes, uint32_t from, uint32_t to) {
    for (uint32_t r = from; r < to; r++)
        if (bytes_of(period, events, r, slot) == bytes)
            return true;
    return false;
}

/*
 * Returns whether the last repetition belongs to the same loop as the others. First, of its
 * allocations that have a usual size (one that most repetitions have), at least half must have that
 * size. Second, each of its sizes is looked up among the sizes that the same allocation has in the
 * earlier repetitions. At least half as many sizes must be found in the first half of the
 * repetitions as in the second half, else a new loop has begun.
 */
static bool goes_on(const struct period *period, const struct events *events) {
    const uint32_t last = period->repetitions - 1, middle = period->repetitions / 2;
    uint32_t usual = 0, same = 0, early = 0, late = 0;
    for (uint32_t i = 0; i < period->length; i++) {
        const uint64_t bytes = bytes_of(period, events, last, i),
                       usual_one = usual_bytes(period, events, i);
        usual += usual_one > 0;
        same += usual_one == bytes;
        early += comes_in(period, events, i, bytes, 0, middle);
        late += comes_in(period, events, i, bytes, middle, last);
    }
    return 2 * same >= usual && 2 * early >= late;
}

/* Returns where the first repetition should begin. Of the events that allocate in a repetition, it
 * is the one before which the fewest bytes are live. */
static uint32_t quietest_event(const struct period *period, const struct events *events) {
    uint64_t live = 0, least = UINT64_MAX;
    uint32_t best = period->prefix_events;
    /*
     * Live bytes are compared in the second repetition, because at its start, as at that of all
     * later ones, the blocks that the repetition before has left are live too.
     */
    const uint32_t from = period->prefix_events + period->length_events;
    for (uint32_t i = 0; i < from + period->length_events; i++) {
        const struct event *event = &events->list[i];
        const uint64_t bytes = events->allocations[event->allocation].bytes;
        if (i >= from && !event->is_free && live < least) {
            least = live;
            best = i - period->length_events;
        }
        live += event->is_free ? -bytes : bytes;
    }
    return best;
}

bool period_find_current(struct period *period, const struct events *events,
                         struct plan_error *error) {
    if (!find_run_with(period, events, last_run, error))
        return false;
    if (period->usual && !goes_on(period, events))
        *period = (struct period){.growth = period->growth};
    if (period->length == 0)
        return true;
    const uint32_t start = quietest_event(period, events);
    period->prefix += allocations_in(events, period->prefix_events, start);
    period->prefix_events = start;
    period->repetitions = (events->count - start) / period->length_events;
    return true;
}

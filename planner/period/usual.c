#include "planner/period/usual.h"

#include <stdlib.h>

#include "base/mix.h"
#include "planner/common/sort.h"
#include "planner/period/align.h"
#include "planner/period/balance.h"
#include "planner/period/lags.h"

/* how many repetitions a loop must have if at least nine tenths of its allocations match */
#define LEAST_PASSES 4
#define CLEAR_PASSES 8 /* how many repetitions a loop must have if fewer than nine tenths match */
#define MOST_PASSES 12 /* how many of the last repetitions are compared at most */
#define SHORT 512      /* a loop of at most this many allocations takes little time to compare */
/* of the lengths that the votes propose, only the TRIED_LONG with the most votes are compared if
 * the longest of them is above SHORT */
#define TRIED_LONG 4
/* to choose a length, SHORT_PASSES times the longest proposed length is compared */
#define SHORT_PASSES 3
#define LONG_PASSES 2 /* replaces SHORT_PASSES if the longest length is above SHORT */
/* how many allocations must match the loop at least, over all repetitions */
#define LEAST_ALLOCATIONS 64
#define ALIKE 7 /* at least ALIKE tenths of the allocations must match the loop */
/* The average length of the repetitions may differ from that of the loop by 1 / LENGTHS of it. */
#define LENGTHS 10
/* The least share of allocations in which two repetitions must be alike. If 20 % of the allocations
 * change at random, the share is 0.64. */
#define LIKE 0.3
/* a shorter length is preferred if its repetitions are alike to at least this part of the best
 * share */
#define NEARLY 0.9
#define ROUNDS 8 /* how often a loop is corrected at most */
/* How many repetitions are written as the result. A period needs three, and one more is written
 * because frees may be missing in one. */
#define COPIES 4

struct search {
    const struct events *events;
    /* a hash of device, thread and size for each allocation; the first one is that of the last
     * allocation */
    uint64_t *tokens;
    uint32_t n;
    struct alignment alignment;
    struct token_loop loop;
};

static void write_tokens(struct search *search) {
    for (uint32_t i = 0; i < search->n; i++) {
        const struct allocation *a = &search->events->allocations[search->n - 1 - i];
        const uint64_t place = (uint64_t)a->device << 32 | a->thread;
        search->tokens[i] = bfc_mix_join(bfc_mix_join(0, place), a->bytes);
    }
}

static void align_all(struct search *search, uint32_t passes) {
    const uint64_t most = (uint64_t)search->loop.count * passes;
    const uint32_t n = most < search->n ? (uint32_t)most : search->n;
    align(&search->alignment, search->tokens, n, &search->loop);
}

/* Returns whether the aligned repetitions free about as many blocks as they allocate. */
static bool frees_all(const struct search *search) {
    const struct alignment *alignment = &search->alignment;
    uint32_t ends[MOST_PASSES], passes = 0;
    for (uint32_t i = 0; i < alignment->covered && passes < MOST_PASSES; i++)
        if (alignment->places[i] != ALIGN_NOWHERE &&
            alignment->places[i] >= passes * search->loop.count) {
            /* index of the last allocation of this repetition */
            const uint32_t last = search->n - 1 - i;
            ends[MOST_PASSES - ++passes] = search->events->allocations[last].birth + 1;
        }
    return is_balanced(search->events, ends + MOST_PASSES - passes, passes);
}

/* Returns how alike the repetitions are if the loop has length `lag`: aligns about `reach`
 * allocations with repetitions of the last `lag` ones, and returns the share that matches.
 * Allocations that only one of the two sides has count as different. Returns 0 if the repetitions
 * do not free what they allocate, because then they are only parts of a loop's repetition. */
static double measure_likeness(struct search *search, uint32_t lag, uint32_t reach) {
    search->loop = (struct token_loop){.tokens = search->tokens, .count = lag};
    align_all(search, (reach + lag - 1) / lag);
    const struct alignment *alignment = &search->alignment;
    const uint32_t passed =
        alignment->passed > alignment->covered ? alignment->passed : alignment->covered;
    const double matched = (double)alignment->matched - lag;
    return passed > lag && frees_all(search) ? matched / (passed - lag) : 0;
}

static uint32_t longest_of(const struct lags *lags, uint32_t count) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i < count; i++)
        longest = lags->list[i] > longest ? lags->list[i] : longest;
    return longest;
}

/* Returns the shortest length of which the repetitions are nearly as alike as those of the best
 * length; 0: those of no length are alike enough. For all lengths about the same allocations are
 * compared. */
static uint32_t best_lag(struct search *search, const struct lags *lags) {
    double like[LAGS_MOST] = {0}, most = LIKE;
    uint32_t count = lags->count, best = 0;
    if (longest_of(lags, count) > SHORT && count > TRIED_LONG)
        count = TRIED_LONG;
    const uint32_t longest = longest_of(lags, count),
                   passes = longest > SHORT ? LONG_PASSES : SHORT_PASSES;
    for (uint32_t i = 0; i < count; i++) {
        like[i] = measure_likeness(search, lags->list[i], passes * longest);
        most = like[i] > most ? like[i] : most;
    }
    for (uint32_t i = 0; i < count; i++)
        if (like[i] >= most * NEARLY && (!best || lags->list[i] < best))
            best = lags->list[i];
    return best;
}

static uint32_t least_allocations(uint32_t passes, uint32_t length) {
    return passes * length - length / 8; /* a few allocations may be missing in the repetitions */
}

/* Returns whether the repetitions have on average about as many allocations as the loop. */
static bool is_as_long(const struct alignment *alignment) {
    const uint64_t covered = alignment->covered, passed = alignment->passed;
    return LENGTHS * passed <= (LENGTHS + 1) * covered &&
           LENGTHS * covered <= (LENGTHS + 1) * passed;
}

static bool is_alike(const struct search *search) {
    const struct alignment *alignment = &search->alignment;
    const uint64_t matched = alignment->matched;
    const uint32_t passes =
        10 * matched >= 9 * (uint64_t)alignment->covered ? LEAST_PASSES : CLEAR_PASSES;
    return alignment->passed >= least_allocations(passes, search->loop.count) &&
           matched >= LEAST_ALLOCATIONS && search->loop.count >= LAGS_LEAST &&
           is_as_long(alignment) && 10 * matched >= (uint64_t)ALIKE * alignment->covered;
}

/* Takes the last repetition as the loop, and corrects it so that it has what many repetitions have.
 * False: the host has no memory. */
static bool settle_loop(struct search *search, uint32_t lag) {
    search->loop = (struct token_loop){
        .tokens = malloc(2 * (size_t)lag * sizeof *search->tokens), .count = lag, .room = 2 * lag};
    for (uint32_t i = 0; search->loop.tokens && i < lag; i++)
        search->loop.tokens[i] = search->tokens[i];
    if (!search->loop.tokens)
        return false;
    align_all(search, MOST_PASSES);
    for (int round = 0;
         round < ROUNDS && align_settle(&search->loop, &search->alignment, search->tokens); round++)
        align_all(search, MOST_PASSES);
    return true;
}

static bool find_loop(struct search *search, bool *found) {
    struct lags lags;
    if (!lags_find(&lags, search->tokens, search->n))
        return false;
    const uint32_t lag = best_lag(search, &lags);
    search->loop = (struct token_loop){.tokens = NULL};
    if (!lag || search->n < least_allocations(LEAST_PASSES, lag))
        return true;
    *found = settle_loop(search, lag) && is_alike(search) && frees_all(search);
    return search->loop.tokens;
}

/* The loop and its alignment with the stream, but in the order of time (tokens are in reverse
 * order). A place is the number of an allocation in the repeated loop: place p is allocation number
 * p % length of the loop, called its slot. All places are below `end`. */
struct course {
    const struct events *events;
    /* by allocation of the stream: its place; ALIGN_NOWHERE: it is not in the loop */
    uint32_t *places;
    /* by allocation of the stream: the place of the next allocation after its free; ALIGN_NOWHERE:
     * it is not freed */
    uint32_t *deaths;
    uint32_t length, end;
    uint32_t next_place; /* the place that the stream's next allocation will have */
    /* for each allocation whose age is known: its slot and age in the key, and its slot */
    struct keyed *ages;
    /* by slot: the median age of the blocks allocated there, in allocations of the loop; NEVER:
     * they outlive a repetition */
    uint32_t *usual_ages;
    uint32_t *samples; /* by slot: index of an allocation of the stream that has this slot */
};

/* Returns how many allocations the loop has after the last allocation that has a place, less the
 * allocations without a place that the stream has after it; at least 0. */
static uint32_t passed_since(const struct alignment *alignment) {
    uint32_t i = 0;
    while (i < alignment->covered && alignment->places[i] == ALIGN_NOWHERE)
        i++;
    return i < alignment->covered && alignment->places[i] > i ? alignment->places[i] - i : 0;
}

static void reverse_places(struct course *course, const struct search *search) {
    const uint32_t passes = (search->alignment.passed + course->length - 1) / course->length;
    course->end = passes * course->length;
    course->next_place = course->end - passed_since(&search->alignment);
    for (uint32_t i = 0; i < search->n; i++) {
        const uint32_t place =
            i < search->alignment.covered ? search->alignment.places[i] : ALIGN_NOWHERE;
        course->places[search->n - 1 - i] =
            place == ALIGN_NOWHERE ? ALIGN_NOWHERE : course->end - 1 - place;
    }
}

/* Goes through the events from the last to the first, so that it knows for each free the place of
 * the allocation that comes next. */
static void find_deaths(struct course *course) {
    uint32_t next = course->next_place;
    for (uint32_t i = 0; i < course->events->allocations_count; i++)
        course->deaths[i] = ALIGN_NOWHERE;
    for (uint32_t e = course->events->count; e-- > 0;) {
        const struct event *event = &course->events->list[e];
        if (event->is_free)
            course->deaths[event->allocation] = next;
        else if (course->places[event->allocation] != ALIGN_NOWHERE)
            next = course->places[event->allocation];
    }
}

/* Returns whether the age of the block is known: it was freed, or it has lived for a whole
 * repetition. The age of a block of the last repetition that still lives is not known yet. */
static bool is_telling(const struct course *course, uint32_t allocation) {
    const uint32_t place = course->places[allocation];
    return place != ALIGN_NOWHERE &&
           (course->deaths[allocation] != ALIGN_NOWHERE || course->end - place > course->length);
}

/* Lists the known ages of blocks with the slots of their allocations. An age is the number of the
 * loop's allocations from the block's own to its free. Each slot's last allocation becomes its
 * sample. Returns the number of ages. */
static uint32_t list_ages(struct course *course) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < course->events->allocations_count; i++) {
        if (course->places[i] == ALIGN_NOWHERE)
            continue;
        const uint32_t slot = course->places[i] % course->length;
        const uint32_t age =
            course->deaths[i] == ALIGN_NOWHERE ? NEVER : course->deaths[i] - course->places[i];
        course->samples[slot] = i;
        if (is_telling(course, i))
            course->ages[count++] = (struct keyed){(uint64_t)slot << 32 | age, slot};
    }
    return count;
}

/* Returns the age, or NEVER if it is longer than a repetition: such a block gets no address in a
 * plan (fold.h), so its exact age does not matter. */
static uint32_t plannable_age(const struct course *course, uint32_t age) {
    return age <= course->length ? age : NEVER;
}

/* Finds the median age of each slot; NEVER: no age is known, or the median is longer than a
 * repetition. False: the host has no memory. */
static bool find_usual_ages(struct course *course) {
    const uint32_t count = list_ages(course);
    for (uint32_t s = 0; s < course->length; s++)
        course->usual_ages[s] = NEVER;
    if (!sort_keyed(course->ages, count))
        return false;
    for (uint32_t from = 0, to = 0; from < count; from = to) {
        const uint32_t slot = course->ages[from].index;
        while (to < count && course->ages[to].index == slot)
            to++;
        course->usual_ages[slot] =
            plannable_age(course, (uint32_t)course->ages[from + (to - from) / 2].key);
    }
    return true;
}

/* Linked lists of allocations. first[p] heads the list of the allocations that are freed right
 * before place p of the result, and next[i] is the allocation after i in its list. */
struct dues {
    uint32_t *first, *next;
};

static void add_copies(struct events *usual, const struct course *course, struct dues *dues) {
    const uint32_t count = COPIES * course->length;
    for (uint32_t place = 0; place < count; place++) {
        const uint32_t slot = (course->next_place + place) % course->length,
                       age = course->usual_ages[slot];
        for (uint32_t i = dues->first[place]; i != NEVER; i = dues->next[i])
            events_add_free(usual, i);
        struct allocation copy = course->events->allocations[course->samples[slot]];
        copy.serial = place + 1;
        events_add_allocation(usual, copy);
        if (age < count - place) {
            dues->next[place] = dues->first[place + age];
            dues->first[place + age] = place;
        }
    }
}

static bool make_copies(struct events *usual, const struct course *course) {
    const size_t count = COPIES * (size_t)course->length;
    struct dues dues = {malloc(count * sizeof(uint32_t)), malloc(count * sizeof(uint32_t))};
    struct events copies = {.list = malloc(2 * count * sizeof *copies.list),
                            .allocations = malloc(count * sizeof *copies.allocations)};
    const bool good = dues.first && dues.next && copies.list && copies.allocations;
    for (size_t i = 0; good && i < count; i++)
        dues.first[i] = NEVER;
    if (good)
        add_copies(&copies, course, &dues);
    free(dues.first);
    free(dues.next);
    if (good)
        *usual = copies;
    else
        events_free(&copies);
    return good;
}

static bool make_room(struct course *course, uint32_t n) {
    course->places = malloc((size_t)n * sizeof *course->places);
    course->deaths = malloc((size_t)n * sizeof *course->deaths);
    course->ages = malloc((size_t)n * sizeof *course->ages);
    course->usual_ages = malloc((size_t)course->length * sizeof *course->usual_ages);
    course->samples = calloc(course->length, sizeof *course->samples);
    return course->places && course->deaths && course->ages && course->usual_ages &&
           course->samples;
}

static bool describe_usual(struct events *usual, const struct search *search) {
    struct course course = {.events = search->events, .length = search->loop.count};
    bool good = make_room(&course, search->n);
    if (good) {
        reverse_places(&course, search);
        find_deaths(&course);
        good = find_usual_ages(&course) && make_copies(usual, &course);
    }
    free(course.places);
    free(course.deaths);
    free(course.ages);
    free(course.usual_ages);
    free(course.samples);
    return good;
}

bool usual_find(struct events *usual, const struct events *events, struct plan_error *error) {
    const uint32_t n = events->allocations_count;
    struct search search = {.events = events, .n = n};
    struct events result = {.list = NULL};
    bool found = false;
    search.tokens = malloc(((size_t)n + 1) * sizeof *search.tokens);
    search.alignment.places = malloc(((size_t)n + 1) * sizeof *search.alignment.places);
    bool good = search.tokens && search.alignment.places;
    if (good)
        write_tokens(&search);
    good = good && find_loop(&search, &found) && (!found || describe_usual(&result, &search));
    free(search.tokens);
    free(search.alignment.places);
    free(search.loop.tokens);
    if (!good)
        return plan_fail_memory(error);
    *usual = result;
    return true;
}

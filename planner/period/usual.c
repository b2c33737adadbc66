#include "planner/period/usual.h"

#include <stdlib.h>

#include "base/mix.h"
#include "planner/common/sort.h"
#include "planner/period/align.h"
#include "planner/period/balance.h"
#include "planner/period/lags.h"

/* how many repetitions a loop must have if at least nine tenths of the allocations that were
 * compared with it have a place in it */
#define LEAST_PASSES 4
/* how many repetitions a loop must have if fewer of them have one: chance explains a few */
#define CLEAR_PASSES 8
#define MOST_PASSES 12 /* how many of the last repetitions are compared with the loop at most */
/* a loop of more than this many allocations is long: comparing it with the stream takes so much
 * time that fewer lengths and fewer allocations are tried */
#define SHORT 512
/* of the proposed lengths of a repetition (lags.h), only the TRIED_LONG with the most votes are
 * tried if the longest proposed one is above SHORT */
#define TRIED_LONG 4
/* To judge a proposed length of a repetition, the stream's last allocations are compared with a
 * loop of that length: SHORT_PASSES times as many as the longest proposed length. */
#define SHORT_PASSES 3
/* If the longest proposed length is above SHORT, only LONG_PASSES times as many allocations as that
 * length are compared. */
#define LONG_PASSES 2
/* how many allocations must match the loop at least, over all repetitions */
#define LEAST_ALLOCATIONS 64
#define ALIKE 7 /* at least ALIKE tenths of the compared allocations must match the loop */
/* The average number of allocations in a repetition may differ from the loop's by 1 / LENGTHS. */
#define LENGTHS 10
/* A proposed length is rejected unless two repetitions of that length have at least this share of
 * their allocations in common. If 20 % of the allocations of each repetition change at random, two
 * repetitions share 0.8 * 0.8 = 0.64. */
#define LIKE 0.3
/* The shortest of the proposed lengths is taken whose repetitions are at least NEARLY times as
 * alike as those of the best length. */
#define NEARLY 0.9
/* the loop is corrected at most this many times, to have the allocations of many repetitions */
#define ROUNDS 8
/* How many equal repetitions of the loop are written as the result. The exact search (period.h),
 * which reads the result, needs three. One more is written because the first differs: it has no
 * frees of blocks from a repetition before it. */
#define COPIES 4

struct search {
    const struct events *events;
    /* for each allocation a hash of its device, thread and size, in reverse order: the first one is
     * that of the last allocation */
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

/* Returns whether the repetitions free about as many blocks as they allocate (balance.h). */
static bool frees_all(const struct search *search) {
    const struct alignment *alignment = &search->alignment;
    uint32_t ends[MOST_PASSES], passes = 0;
    for (uint32_t i = 0; i < alignment->covered && passes < MOST_PASSES; i++)
        if (alignment->places[i] != ALIGN_NOWHERE &&
            alignment->places[i] >= passes * search->loop.count) {
            /* In the reversed order, the repetition begins with this allocation; in the stream, it
             * is the repetition's last. */
            const uint32_t last = search->n - 1 - i;
            ends[MOST_PASSES - ++passes] = search->events->allocations[last].birth + 1;
        }
    return is_balanced(search->events, ends + MOST_PASSES - passes, passes);
}

/* Returns how alike the repetitions are if the loop has `lag` allocations: aligns about the last
 * `reach` allocations with repetitions of the last `lag` ones, and returns which share of them is
 * equal. Allocations that have no partner on the other side of the alignment count as different.
 * Returns 0 if the repetitions do not free what they allocate, because each is then only a part of
 * a repetition of the loop. */
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

/* Returns the shortest of the proposed lengths whose repetitions are nearly as alike as those of
 * the best length; 0: the repetitions of no length are alike enough. About equally many of the last
 * allocations are compared for each length, so that the results can be compared. */
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
    /* the repetitions may lack a few of the loop's allocations */
    return passes * length - length / 8;
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

/* Takes the last repetition as the loop, and corrects the loop so that it has the allocations that
 * many repetitions have. False: the host has no memory. */
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

/* A loop that the program repeats, and where the stream's allocations lie in it, in the order of
 * time (struct search has them reversed). A place is counted over all repetitions of the loop:
 * place p is that of the loop's allocation number p % length, which is called the slot of p. All
 * places are below `end`. */
struct course {
    const struct events *events;
    /* by allocation of the stream: its place; ALIGN_NOWHERE: it is not in the loop */
    uint32_t *places;
    /* by allocation of the stream: the place of the next allocation after its free; ALIGN_NOWHERE:
     * it is not freed */
    uint32_t *deaths;
    uint32_t length, end;
    uint32_t next_place; /* the place that the stream's next allocation will have */
    /* one element for each block whose age is known: `index` is its slot, and `key` joins the slot
     * and the age, so that the blocks of a slot can be sorted by age */
    struct keyed *ages;
    /* by slot: the median age of the slot's blocks, which is how many allocations of the loop are
     * made while such a block lives; NEVER: more than a repetition has */
    uint32_t *usual_ages;
    uint32_t *samples; /* by slot: index of the stream's last allocation that has this slot */
};

/* Returns how many allocations of the loop are still to come when the stream ends: those after the
 * last allocation that the stream has in common with the loop, less the other allocations that the
 * stream has after that; at least 0. */
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

/* Returns whether the age of the allocation's block is known: the block was freed, or it has lived
 * for more than a repetition. A block of the last repetition that still lives may be freed soon, so
 * its age is not known. */
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

/* Returns the age of a block (the number of the loop's allocations made while it lives), or NEVER
 * if it is longer than a repetition: such a block gets no address in a plan (fold.h), so its exact
 * age does not matter. */
static uint32_t plannable_age(const struct course *course, uint32_t age) {
    return age <= course->length ? age : NEVER;
}

/* Finds for each slot, an allocation of the loop, the median age of its blocks; NEVER: no age is
 * known, or the median is longer than a repetition. False: the host has no memory. */
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

/* Which allocations of the result are freed when. Those that are freed right before allocation p of
 * the result form a linked list: first[p] is the first of them, and next[i] is the one after i. */
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

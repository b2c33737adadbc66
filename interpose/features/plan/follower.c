/* Makes the tables by which a pool follows a plan: the planned allocations of each thread, and the
 * planned blocks in the order of their places. */
#include "interpose/features/plan/follower.h"

#include <stdlib.h>

enum {
    COURSES_MOST = 64,
    /* if a plan has more blocks than this, places for unplanned allocations are looked up only once
     * an allocation has needed them */
    FORESEEN_MOST = 4096,
    /* how many planned blocks one call of bfc_follower_look_ahead goes through */
    LOOKED_AT_MOST = 1 << 21,
    /* the longest pause between requests for the plan's memory is 2 to this power, in repetitions
     * of the loop */
    STRIPPED_MOST = 8,
};

/* Sets `starts`: for each arena of the plan that is of this device, the offset in the plan's memory
 * at which that arena's blocks begin. */
static void lay_out(struct bfc_follower *follower, const struct bfc_arena *arena,
                    uint64_t *starts) {
    const struct bfc_plan *plan = follower->plan;
    for (uint32_t a = 0; a < plan->header->arenas; a++) {
        if (plan->arenas[a].device != (uint32_t)arena->device)
            continue;
        starts[a] = follower->bytes;
        follower->bytes += (plan->arenas[a].peak + BFC_PLAN_LARGE - 1) & ~(BFC_PLAN_LARGE - 1);
    }
}

/* Returns the course (the planned allocations of one thread) to which an event of the plan belongs.
 * NULL: the event is of another device, or the plan has too many threads. */
static struct bfc_course *course_of(struct bfc_follower *follower, const struct bfc_arena *arena,
                                    const struct bfc_plan_event *event) {
    struct bfc_course *courses = follower->courses;
    uint32_t i = 0, thread = event->thread;
    if (follower->plan->arenas[event->arena].device != (uint32_t)arena->device)
        return NULL;
    while (i < follower->course_count && courses[i].thread != thread)
        i++;
    if (i == COURSES_MOST)
        return NULL;
    if (i == follower->course_count)
        courses[follower->course_count++] = (struct bfc_course){.thread = thread};
    return &courses[i];
}

static void count_slots(struct bfc_follower *follower, const struct bfc_arena *arena) {
    const struct bfc_plan *plan = follower->plan;
    for (uint32_t i = 0; i < plan->header->events; i++) {
        struct bfc_course *course = course_of(follower, arena, &plan->events[i]);
        if (course) {
            course->count++;
            course->prefix += i < plan->header->prefix;
        }
    }
}

static void begin_courses(struct bfc_follower *follower, const struct bfc_arena *arena) {
    struct bfc_slot *slots = follower->slots;
    for (uint32_t i = 0; i < follower->course_count; i++) {
        struct bfc_course *course = &follower->courses[i];
        course->slots = slots;
        slots += course->count;
        course->plan = follower->plan;
        course->device = (uint32_t)arena->device;
        course->periodic = course->count > course->prefix && follower->plan->header->period;
        course->jitter = follower->plan->header->flags & BFC_PLAN_JITTER;
        course->count = 0; /* 0 again, since fill_slots counts the planned allocations anew while it
                              fills them in */
    }
}

static void fill_slots(struct bfc_follower *follower, const struct bfc_arena *arena,
                       const uint64_t *starts) {
    const struct bfc_plan *plan = follower->plan;
    for (uint32_t i = 0; i < plan->header->events; i++) {
        const struct bfc_plan_event *event = &plan->events[i];
        struct bfc_course *course = course_of(follower, arena, event);
        if (!course)
            continue;
        struct bfc_slot *slot = &course->slots[course->count++];
        *slot = (struct bfc_slot){.size = event->size, .event = i, .offset = BFC_NO_PLACE};
        if (event->class_of != BFC_PLAN_UNPLANNED && event->size) {
            slot->offset = starts[event->arena] + event->offset;
            follower->places.all[follower->places.count++] = slot;
        }
    }
}

static uint64_t mean_size(const struct bfc_places *places) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < places->count; i++)
        sum += places->all[i]->size;
    return places->count ? sum / places->count : 0;
}

static int by_offset(const void *a, const void *b) {
    const struct bfc_slot *const *p = a, *const *q = b;
    return (*p)->offset < (*q)->offset ? -1 : (*p)->offset > (*q)->offset;
}

void bfc_follower_drop(struct bfc_follower *follower) {
    free(follower->courses);
    free(follower->slots);
    free(follower->gaps);
    free(follower->places.all);
    free(follower);
}

static bool fill_starts(struct bfc_follower *follower, const struct bfc_arena *arena,
                        uint64_t *starts) {
    uint32_t events = follower->plan->header->events;
    lay_out(follower, arena, starts);
    follower->courses = calloc(COURSES_MOST, sizeof *follower->courses);
    follower->slots = calloc((size_t)events + 1, sizeof *follower->slots);
    follower->places.all = calloc((size_t)events + 1, sizeof *follower->places.all);
    follower->places.bytes = follower->bytes;
    follower->gaps = calloc((size_t)events + 1, sizeof *follower->gaps);
    if (!follower->courses || !follower->slots || !follower->places.all)
        return false;
    count_slots(follower, arena);
    begin_courses(follower, arena);
    fill_slots(follower, arena, starts);
    for (uint32_t i = 0; i < follower->course_count; i++) {
        bfc_cursor_note_sizes(&follower->courses[i]);
        follower->slot_count += follower->courses[i].count;
    }
    follower->mean = mean_size(&follower->places);
    qsort(follower->places.all, follower->places.count, sizeof *follower->places.all, by_offset);
    return follower->places.count;
}

struct bfc_follower *bfc_follower_make(const struct bfc_arena *arena, const struct bfc_plan *plan) {
    struct bfc_follower *follower = calloc(1, sizeof *follower);
    if (!follower)
        return NULL;
    uint64_t *starts = calloc((size_t)plan->header->arenas + 1, sizeof *starts);
    follower->plan = plan;
    bool filled = starts && fill_starts(follower, arena, starts);
    free(starts);
    if (filled)
        return follower;
    bfc_follower_drop(follower);
    return NULL;
}

const struct bfc_gaps *bfc_follower_gaps(struct bfc_follower *follower,
                                         const struct bfc_slot *slot) {
    uint32_t unknown = BFC_GAPS_UNKNOWN;
    if (!follower->gaps || slot->offset == BFC_NO_PLACE)
        return NULL;
    struct bfc_gaps *gaps = &follower->gaps[slot - follower->slots];
    if (LIKELY(bfc_load_acquire(&gaps->state) == BFC_GAPS_KNOWN))
        return gaps;
    bfc_compare_exchange_acq_rel(&gaps->state, &unknown, (uint32_t)BFC_GAPS_WANTED);
    bfc_store_release(&follower->wants_gaps, true);
    return NULL;
}

static bool is_to_be_looked_up(const struct bfc_follower *follower, uint32_t slot) {
    uint32_t state = bfc_load_relaxed(&follower->gaps[slot].state);
    bool foreseen = follower->places.count <= FORESEEN_MOST && state == BFC_GAPS_UNKNOWN;
    return (foreseen || state == BFC_GAPS_WANTED) && follower->slots[slot].offset != BFC_NO_PLACE;
}

bool bfc_follower_look_ahead(struct bfc_follower *follower) {
    uint32_t left = LOOKED_AT_MOST / (follower->places.count + 1) + 1;
    if (follower->looked == follower->slot_count) {
        if (!bfc_exchange_acquire(&follower->wants_gaps, false))
            return false;
        follower->looked = 0;
    }
    for (; follower->gaps && left > 0 && follower->looked < follower->slot_count;
         follower->looked++) {
        uint32_t slot = follower->looked;
        if (!is_to_be_looked_up(follower, slot))
            continue;
        bfc_gaps_find(&follower->gaps[slot], &follower->places, follower->plan,
                      &follower->slots[slot]);
        left--;
    }
    return follower->gaps;
}

bool bfc_follower_may_ask(const struct bfc_follower *follower, uint32_t round) {
    uint32_t refused = bfc_load_relaxed(&follower->refused_round);
    bool rests = bfc_load_relaxed(&follower->stripped) &&
                 (int32_t)(round - bfc_load_relaxed(&follower->not_before)) < 0;
    return !rests && (!refused || round >= 2 * refused);
}

void bfc_follower_rest(struct bfc_follower *follower) {
    uint32_t before = bfc_load_relaxed(&follower->stripped);
    uint32_t times = before < STRIPPED_MOST ? before + 1 : STRIPPED_MOST;
    bfc_store_relaxed(&follower->not_before, follower->courses[0].round + (1u << times));
    bfc_store_relaxed(&follower->stripped, times);
}

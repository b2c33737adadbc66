/* Matches the allocations of a thread with those that a plan foresees for it. */
#include "interpose/features/plan/cursor.h"

enum {
    /* how many of the plan's allocations are searched on each side of the expected one */
    REACH = 16,
    /* the thread's position in the plan is lost after this many allocations in a row that the plan
     * does not have */
    MOST_UNMATCHED = 64,
    /* a thread whose position in the plan is lost is taken to be in the loop again once this many
     * of its allocations in a row have the sizes with which the loop begins */
    SIGNS = 4,
    /* if a thread's position in the plan has jumped out of order by mistake, the jump can be undone
     * within this many planned allocations */
    DOUBT = 8,
};

static bool is_same(const struct bfc_course *course, const struct bfc_slot *slot, uint64_t size) {
    return size == slot->size || (course->jitter && size < slot->size && size >= slot->size / 2);
}

/* Finds the planned allocation that comes `ahead` places after the expected one, in this repetition
 * of the loop or the next. False: the plan has none there. */
static bool find_ahead(const struct bfc_course *course, uint32_t ahead, struct bfc_match *match) {
    uint64_t at = (uint64_t)course->at + ahead;
    match->next_round = at >= course->count;
    if (match->next_round &&
        (!course->periodic || at - course->count >= course->count - course->prefix))
        return false;
    match->at = (uint32_t)(match->next_round ? at - course->count + course->prefix : at);
    return true;
}

static bool is_ahead(const struct bfc_course *course, uint32_t ahead, uint64_t size,
                     struct bfc_match *match) {
    return find_ahead(course, ahead, match) &&
           (match->next_round || course->slots[match->at].matched != course->round) &&
           course->slots[match->at].size == size;
}

static uint32_t size_bit(uint64_t size) {
    return (uint32_t)((size >> 9) * BFC_MIX_STEP >> 32) % (64 * BFC_SIZE_WORDS);
}

void bfc_cursor_note_sizes(struct bfc_course *course) {
    for (uint32_t i = 0; i < course->count; i++) {
        uint32_t bit = size_bit(course->slots[i].size);
        course->sizes[bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

/* Whether the plan may have an allocation of this size: the bit of the size's hash is set. So most
 * sizes that the plan does not have need no search. */
static bool is_planned(const struct bfc_course *course, uint64_t size) {
    uint32_t bit = size_bit(size);
    return course->sizes[bit / 64] >> bit % 64 & 1;
}

/* Whether the planned allocation that comes `behind` places before the expected one has this size
 * and was skipped in this repetition of the loop, so that it may still come. */
static bool is_behind(const struct bfc_course *course, uint32_t behind, uint64_t size,
                      struct bfc_match *match) {
    match->next_round = false;
    match->at = course->at - behind;
    return behind <= course->at && course->slots[match->at].matched != course->round &&
           course->slots[match->at].size == size;
}

/*
 * Searches the neighbours of the expected planned allocation for one of exactly this size. Smaller
 * sizes are not accepted, even if the plan's sizes vary (`jitter`), since nearly every neighbour
 * would match then. The search ends at half the loop's length, beyond which a planned allocation is
 * nearer in the other direction.
 */
static bool search_near(const struct bfc_course *course, uint64_t size, struct bfc_match *match) {
    uint32_t half = (course->count - course->prefix) / 2;
    uint32_t reach = course->periodic && half < REACH ? half : REACH;
    for (uint32_t away = 1; away <= reach; away++)
        if (is_behind(course, away, size, match) || is_ahead(course, away, size, match))
            return true;
    return false;
}

/* Whether the position in the plan changed out of order so recently that the change may have been a
 * mistake: an unplanned allocation may have had the size of a planned one by chance. */
static bool is_doubted(const struct bfc_course *course) {
    return course->moved && course->at - course->moved_at < DOUBT;
}

/* Whether the plan's allocation with index `at` has this size. An allocation that was matched in
 * this repetition of the loop counts too, since that match may have been by chance. */
static bool is_at(const struct bfc_course *course, int64_t at, uint64_t size,
                  struct bfc_match *match) {
    match->next_round = false;
    match->at = (uint32_t)at;
    return at >= 0 && at < course->count && course->slots[at].size == size;
}

/* Undoes a recent jump of the position in the plan if this allocation fits where the thread would
 * be without that jump: at the present position less the jump's distance, if the allocation that
 * caused the jump came in place of a planned one; one place earlier, if that allocation was not
 * planned at all. */
static bool search_back(const struct bfc_course *course, uint64_t size, struct bfc_match *match) {
    int64_t at = (int64_t)course->at - course->moved;
    return is_doubted(course) &&
           (is_at(course, at, size, match) || is_at(course, at - 1, size, match));
}

/* Returns the index of the thread's first planned allocation whose event in the plan is not before
 * `event`; if there is none, the number of its planned allocations. */
static uint32_t find_slot(const struct bfc_course *course, uint32_t event) {
    uint32_t low = 0, high = course->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (course->slots[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Searches the planned allocations whose sizes are unique in the plan (anchors), but only after two
 * allocations without a match: an unplanned one may have such a size by chance. */
static bool search_anchors(const struct bfc_course *course, uint64_t size,
                           struct bfc_match *match) {
    if (course->unmatched < 2 && !course->lost)
        return false;
    const struct bfc_plan *plan = course->plan;
    const struct bfc_plan_anchor *anchor = bfc_plan_find_anchor(
        plan->anchors, plan->header->anchors, bfc_plan_token(course->device, size, course->thread));
    if (!anchor)
        return false;
    match->next_round = false;
    match->at = find_slot(course, anchor->event);
    return match->at < course->count && course->slots[match->at].event == anchor->event &&
           course->slots[match->at].matched != course->round;
}

struct bfc_match bfc_cursor_look(const struct bfc_course *course, uint64_t size) {
    struct bfc_match match = {.at = course->at};
    if (LIKELY(!course->lost) && find_ahead(course, 0, &match)) {
        match.known = true;
        match.same = is_same(course, &course->slots[match.at], size);
        if (LIKELY(match.same))
            return match;
    }
    struct bfc_match other = {.known = true, .same = true, .jumped = true};
    if (!is_planned(course, size))
        return match;
    other.returned = match.known && search_back(course, size, &other);
    if (other.returned || (match.known && search_near(course, size, &other)) ||
        search_anchors(course, size, &other))
        return other;
    return match;
}

static void begin_round(struct bfc_course *course) {
    if (!++course->round)
        course->round = 1;
    course->moved = 0;
}

/* Finds a lost position in the plan again, once several allocations in a row have the sizes of the
 * first ones of the loop. */
static void look_for_beginning(struct bfc_course *course, uint64_t size) {
    uint32_t length = course->count - course->prefix, signs = length < SIGNS ? length : SIGNS;
    if (!course->periodic)
        return;
    const struct bfc_slot *first = &course->slots[course->prefix];
    bool goes_on = is_same(course, &first[course->begun], size);
    course->begun = goes_on ? course->begun + 1 : is_same(course, first, size);
    if (course->begun < signs)
        return;
    begin_round(course);
    course->at = course->prefix + course->begun;
    course->lost = false;
    course->unmatched = course->begun = 0;
}

/* Stores by how many planned allocations the position in the plan has jumped out of order. If it
 * jumps again right after a jump, the distance counts from before the first jump, so that both can
 * be undone together. */
static void note_move(struct bfc_course *course, const struct bfc_match *match) {
    if (match->returned || course->lost || !is_doubted(course))
        course->moved = 0;
    if (!match->jumped || match->returned || course->lost)
        return;
    int64_t from = course->at;
    if (course->moved && course->at == course->moved_at)
        from -= course->moved;
    course->moved = (int32_t)(match->at - from);
    course->moved_at = match->at + 1;
}

void bfc_cursor_pass(struct bfc_course *course, const struct bfc_match *match, uint64_t size) {
    if (UNLIKELY(!match->known)) {
        if (course->lost)
            look_for_beginning(course, size);
        return;
    }
    note_move(course, match);
    if (match->next_round)
        begin_round(course);
    course->lost = false;
    course->at = match->at + 1;
    course->unmatched = match->same ? 0 : course->unmatched + 1;
    if (LIKELY(match->same))
        course->slots[match->at].matched = course->round;
    else if (course->unmatched >= MOST_UNMATCHED)
        course->lost = true;
}

void bfc_cursor_begin(struct bfc_course *course, uint32_t event) {
    course->at = find_slot(course, event);
    course->unmatched = course->begun = 0;
    course->lost = false;
    begin_round(course);
}

#include "planner/pack/floors.h"

#include <stdlib.h>
#include <string.h>

/* An unplaced box that is alive in the section of time which is being examined. */
struct job {
    /* the lowest end that the box can have: its floor (the least offset that it can still have)
     * plus its size */
    int32_t top;
    int32_t size;
    uint32_t box;
};

bool floors_make(struct floors *s, const struct box *boxes, uint32_t n, uint32_t sections) {
    uint32_t sum = 0;
    *s = (struct floors){.list_at = calloc(sections + (size_t)1, sizeof *s->list_at),
                         .low = malloc((n + (size_t)1) * sizeof *s->low),
                         .changed = calloc(sections + (size_t)1, sizeof *s->changed),
                         .jobs = malloc((n + (size_t)1) * sizeof *s->jobs)};
    if (!s->list_at || !s->low || !s->changed || !s->jobs)
        return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t at = boxes[i].birth; at < boxes[i].death; at++)
            s->list_at[at]++;
    for (uint32_t i = 0; i <= sections; i++)
        s->list_at[i] = sum += s->list_at[i];
    s->list = malloc((sum + (size_t)1) * sizeof *s->list);
    return s->list;
}

void floors_free(struct floors *s) {
    free(s->list);
    free(s->list_at);
    free(s->low);
    free(s->changed);
    free(s->jobs);
    *s = (struct floors){0};
}

void floors_begin(struct floors *s, const struct box *boxes, uint32_t n, int32_t capacity,
                  uint32_t *blame) {
    s->boxes = boxes;
    s->capacity = capacity;
    s->blame = blame;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t at = boxes[i].birth; at < boxes[i].death; at++)
            s->list[--s->list_at[at]] = i;
}

void floors_changed(struct floors *s, uint32_t box) {
    const struct box *b = &s->boxes[box];
    memset(s->changed + b->birth, true, b->death - b->birth);
}

void floors_forget(struct floors *s, uint32_t lo, uint32_t hi) {
    memset(s->changed + lo, false, hi - lo);
}

/* Writes the unplaced boxes that are alive in the section of time to s->jobs, ordered by `top` (the
 * lowest end that the box can have), the highest first. Returns how many there are. */
static uint32_t gather_jobs(struct floors *s, uint32_t section) {
    uint32_t count = 0;
    for (uint32_t i = s->list_at[section]; i < s->list_at[section + 1]; i++) {
        const uint32_t box = s->list[i];
        const int32_t size = (int32_t)s->boxes[box].size;
        const struct job job = {s->low[box] + size, size, box};
        uint32_t at = count;
        if (s->low[box] == FLOORS_PLACED || size == 0)
            continue;
        for (; at > 0 && s->jobs[at - 1].top < job.top; at--)
            s->jobs[at] = s->jobs[at - 1];
        s->jobs[at] = job;
        count++;
    }
    return count;
}

/* Returns whether the floor (least possible offset) of some box in the section may have to rise.
 * None has to if all unplaced boxes of the section, put on top of each other above the highest
 * floor, fit below the capacity. */
static bool may_rise(const struct floors *s, uint32_t section) {
    int32_t sum = 0, highest = 0;
    for (uint32_t i = s->list_at[section]; i < s->list_at[section + 1]; i++) {
        const int32_t low = s->low[s->list[i]];
        sum += low == FLOORS_PLACED ? 0 : (int32_t)s->boxes[s->list[i]].size;
        highest = low > highest ? low : highest;
    }
    return highest + sum > s->capacity;
}

/* Returns the least offset that box number `job` of s->jobs can have. The boxes come by falling
 * `top`, the lowest end that a box can have. If boxes 0 to i do not all fit above this box, it must
 * lie above one of them, so its offset is at least the lowest of their tops, that of box i. */
static int32_t least_floor(const struct floors *s, uint32_t count, uint32_t job) {
    const int32_t floor = s->jobs[job].top - s->jobs[job].size;
    int32_t room = s->capacity - s->jobs[job].top;
    for (uint32_t i = 0; i < count && s->jobs[i].top > floor; i++) {
        room -= i == job ? 0 : s->jobs[i].size;
        if (room < 0)
            return s->jobs[i].top;
    }
    return floor;
}

/* Raises the floors (least possible offsets) of the boxes that are alive in the section. *rose
 * becomes true if one has risen. False: a box would have to end above the capacity. */
static bool tighten_section(struct floors *s, uint32_t section, bool *rose) {
    s->changed[section] = false;
    const uint32_t count = may_rise(s, section) ? gather_jobs(s, section) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const int32_t floor = least_floor(s, count, i);
        if (floor == s->jobs[i].top - s->jobs[i].size)
            continue;
        if (floor + s->jobs[i].size > s->capacity) {
            s->blame[section]++;
            return false;
        }
        s->low[s->jobs[i].box] = floor;
        floors_changed(s, s->jobs[i].box);
        s->changed[section] = false;
        *rose = true;
    }
    return true;
}

bool floors_raise(struct floors *s, uint32_t lo, uint32_t hi, bool *rose) {
    for (uint32_t i = lo; i < hi; i++)
        if (s->changed[i] && !tighten_section(s, i, rose))
            return false;
    return true;
}

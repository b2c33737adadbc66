#include "planner/problem/parts.h"

#include <stdlib.h>

#include "planner/common/sort.h"

/* Once each box has been examined this many times on average, ranges of boxes are not divided
 * further, so that the time stays bounded. */
#define WORK_PER_BOX 64

struct range {
    uint32_t from;
    uint32_t to;
    uint64_t base;
};

struct cutter {
    const struct arena *arena;
    struct parts *parts;
    uint64_t *offsets;
    uint32_t *order; /* the items in the order of their births */
    struct range *stack;
    uint32_t depth;
    uint32_t room;
    uint32_t parts_room;
    uint64_t work;
};

static bool push_range(struct cutter *cutter, struct range range) {
    if (cutter->depth == cutter->room) {
        const uint32_t room = cutter->room == 0 ? 64 : cutter->room * 2;
        struct range *stack = realloc(cutter->stack, room * sizeof *stack);
        if (!stack)
            return false;
        cutter->stack = stack;
        cutter->room = room;
    }
    cutter->stack[cutter->depth++] = range;
    return true;
}

static const struct box *box_at(const struct cutter *cutter, uint32_t position) {
    return &cutter->arena->boxes[cutter->order[position]];
}

/* Sets the part's lower bound, the most bytes that are live in any section. It sums up, section by
 * section, the sizes of boxes that begin less those of boxes that end. */
static bool bound_part(struct cutter *cutter, struct part *part) {
    const struct box *boxes = cutter->parts->boxes + part->from;
    uint64_t *change = calloc((size_t)part->sections + 1, sizeof *change);
    uint64_t live = 0;
    if (!change)
        return false;
    for (uint32_t i = 0; i < part->count; i++) {
        change[boxes[i].birth] += boxes[i].size;
        /* The unsigned difference may wrap around below 0. The running sum then wraps around once
         * more, so its value is right. */
        change[boxes[i].death] -= boxes[i].size;
    }
    for (uint32_t s = 0; s < part->sections; s++) {
        live += change[s];
        part->bound = live > part->bound ? live : part->bound;
    }
    free(change);
    return true;
}

static bool add_part(struct cutter *cutter, struct range range, uint32_t lo, uint32_t hi) {
    struct parts *parts = cutter->parts;
    if (parts->count == cutter->parts_room) {
        const uint32_t room = cutter->parts_room == 0 ? 16 : cutter->parts_room * 2;
        struct part *list = realloc(parts->list, room * sizeof *list);
        if (!list)
            return false;
        parts->list = list;
        cutter->parts_room = room;
    }
    struct part *part = &parts->list[parts->count++];
    *part = (struct part){parts->boxes_count, range.to - range.from, hi - lo, range.base, 0};
    for (uint32_t i = range.from; i < range.to; i++) {
        struct box box = *box_at(cutter, i);
        box.birth -= lo;
        box.death -= lo;
        parts->boxes[parts->boxes_count] = box;
        parts->item[parts->boxes_count++] = cutter->order[i];
    }
    if (part->count > parts->most_boxes)
        parts->most_boxes = part->count;
    if (part->sections > parts->most_sections)
        parts->most_sections = part->sections;
    return bound_part(cutter, part);
}

/*
 * Places those boxes of the range that are alive in all sections from `lo` to before `hi` at the
 * bottom of the range, and removes them from the range. The other boxes keep their order.
 */
static void peel_range(struct cutter *cutter, struct range *range, uint32_t lo, uint32_t hi) {
    uint32_t keep = range->to;
    for (uint32_t i = range->to; i-- > range->from;) {
        const uint32_t item = cutter->order[i];
        const struct box *box = box_at(cutter, i);
        if (box->birth == lo && box->death == hi) {
            cutter->offsets[item] = range->base;
            range->base += box->size;
        } else {
            cutter->order[--keep] = item;
        }
    }
    range->from = keep;
}

/* Places those boxes of a range that are alive in all its sections at the bottom of the range. If
 * some boxes remain, the range is put back to be cut again, or becomes a part if no box was placed
 * or the limit of work is reached. */
static bool settle_range(struct cutter *cutter, struct range range, uint32_t lo, uint32_t hi) {
    const uint32_t before = range.from;
    cutter->work += range.to - range.from;
    peel_range(cutter, &range, lo, hi);
    if (range.from == range.to)
        return true;
    if (range.from > before && cutter->work < (uint64_t)cutter->arena->count * WORK_PER_BOX)
        return push_range(cutter, range);
    return add_part(cutter, range, lo, hi);
}

static bool cut_range(struct cutter *cutter, struct range range) {
    uint32_t from = range.from;
    uint32_t hi = box_at(cutter, from)->death;
    for (uint32_t i = from + 1; i <= range.to; i++) {
        const bool open = i < range.to && box_at(cutter, i)->birth < hi;
        if (open) {
            const uint32_t death = box_at(cutter, i)->death;
            hi = death > hi ? death : hi;
            continue;
        }
        const uint32_t lo = box_at(cutter, from)->birth;
        if (!settle_range(cutter, (struct range){from, i, range.base}, lo, hi))
            return false;
        from = i;
        hi = i < range.to ? box_at(cutter, i)->death : 0;
    }
    return true;
}

static bool order_by_birth(struct cutter *cutter) {
    const uint32_t count = cutter->arena->count;
    struct keyed *keyed = malloc(((size_t)count + 1) * sizeof *keyed);
    bool good = keyed;
    for (uint32_t i = 0; good && i < count; i++)
        keyed[i] = (struct keyed){cutter->arena->boxes[i].birth, i};
    good = good && sort_keyed(keyed, count);
    for (uint32_t i = 0; good && i < count; i++)
        cutter->order[i] = keyed[i].index;
    free(keyed);
    return good;
}

bool parts_build(struct parts *parts, const struct arena *arena, uint64_t *offsets) {
    const size_t n = (size_t)arena->count + 1;
    *parts = (struct parts){.boxes = malloc(n * sizeof *parts->boxes),
                            .item = malloc(n * sizeof *parts->item)};
    struct cutter cutter = {.arena = arena,
                            .parts = parts,
                            .offsets = offsets,
                            .order = malloc(n * sizeof *cutter.order)};
    bool good = parts->boxes && parts->item && cutter.order && order_by_birth(&cutter);
    if (good && arena->count > 0)
        good = push_range(&cutter, (struct range){0, arena->count, 0});
    while (good && cutter.depth > 0)
        good = cut_range(&cutter, cutter.stack[--cutter.depth]);
    free(cutter.order);
    free(cutter.stack);
    if (!good)
        parts_free(parts);
    return good;
}

void parts_free(struct parts *parts) {
    free(parts->list);
    free(parts->boxes);
    free(parts->item);
    *parts = (struct parts){0};
}

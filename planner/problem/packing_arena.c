#include "planner/problem/packing_arena.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "planner/common/number.h"
#include "planner/common/sort.h"
#include "planner/common/watch.h"
#include "planner/problem/classes.h"
#include "planner/problem/staircase.h"
#include "planner/problem/sweep.h"

struct builder {
    struct problem *problem;
    struct classes classes;
    struct plan_error *error;
    struct keyed *order; /* the rows, ordered by space, then by item, then by class */
    uint32_t *pieces;    /* by space: how many pieces were made so far */
    struct staircase staircase;
};

static void arena_free(struct arena *arena) {
    free(arena->boxes);
    free(arena->spans);
    free(arena->pieces);
    free(arena->first);
    free(arena->pins);
}

void problem_free(struct problem *problem) {
    for (uint32_t i = 0; problem->arenas && i < problem->count; i++)
        arena_free(&problem->arenas[i]);
    free(problem->arenas);
    free(problem->item);
    free(problem->place);
    *problem = (struct problem){0};
}

uint64_t problem_bound(const struct problem *problem) {
    uint64_t sum = 0;
    for (uint32_t a = 0; a < problem->count; a++)
        sum = bfc_add_saturating(sum, problem->arenas[a].bound);
    return sum;
}

static bool allocate_arena(struct arena *arena, uint32_t items, size_t rows, bool pins) {
    arena->count = items;
    arena->boxes = calloc((size_t)items + 1, sizeof *arena->boxes);
    arena->spans = calloc((size_t)items + 1, sizeof *arena->spans);
    arena->pieces = malloc((rows * 2 + 1) * sizeof *arena->pieces);
    arena->first = calloc((size_t)items + 1, sizeof *arena->first);
    if (pins)
        arena->pins = malloc(((size_t)items + 1) * sizeof *arena->pins);
    if (pins && arena->pins)
        memset(arena->pins, 0xff, items * sizeof *arena->pins);
    return arena->boxes && arena->spans && arena->pieces && arena->first && (!pins || arena->pins);
}

static bool allocate_arenas(struct builder *builder) {
    struct problem *problem = builder->problem;
    const struct lifetimes *lifetimes = problem->lifetimes;
    const uint32_t spaces = lifetimes_spaces(lifetimes);
    uint32_t *rows = calloc(spaces, sizeof *rows);
    problem->arenas = calloc(spaces, sizeof *problem->arenas);
    problem->count = spaces;
    bool good = rows && problem->arenas;
    for (uint32_t i = 0; good && i < lifetimes->count; i++)
        rows[lifetimes->rows[i].space]++;
    for (uint32_t s = 0; good && s < spaces; s++)
        good = allocate_arena(&problem->arenas[s], builder->classes.items[s], rows[s],
                              lifetimes->has_pin);
    free(rows);
    const size_t n = (size_t)lifetimes->count + 1;
    builder->pieces = calloc(spaces, sizeof *builder->pieces);
    problem->item = malloc(n * sizeof *problem->item);
    problem->place = malloc(n * sizeof *problem->place);
    builder->order = malloc(n * sizeof *builder->order);
    return good && builder->pieces && problem->item && problem->place && builder->order;
}

/* Orders the rows by space, then by item, then by class. It sorts by class first: the later sort is
 * stable, and so it keeps the order of classes. */
static bool order_rows(struct builder *builder) {
    const struct lifetimes *lifetimes = builder->problem->lifetimes;
    const struct classes *classes = &builder->classes;
    for (uint32_t i = 0; i < lifetimes->count; i++)
        builder->order[i] = (struct keyed){classes->leader[i], i};
    if (lifetimes->has_alias && !sort_keyed(builder->order, lifetimes->count))
        return false;
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        const uint32_t row = builder->order[i].index;
        const uint32_t item = classes->item[classes->leader[row]];
        builder->order[i].key = (uint64_t)lifetimes->rows[row].space << 32 | item;
        builder->problem->item[row] = item;
        builder->problem->place[row] = classes->place[classes->leader[row]];
    }
    watch_add(lifetimes->count);
    return sort_keyed(builder->order, lifetimes->count);
}

static struct piece piece_of_row(const struct builder *builder, uint32_t row) {
    const struct lifetime *r = &builder->problem->lifetimes->rows[row];
    uint64_t size = 0;
    /* The rounded size fits into 64 bits, since classes_build has refused sizes that are too
     * large. */
    plan_round_up(r->size, builder->problem->align, &size);
    return (struct piece){r->birth, r->death, builder->problem->place[row], size, r->stream, row};
}

/* Adds the pieces of a class, whose rows are order[from] to order[to - 1]: rectangles that together
 * are, at each time, as high as the class's largest live row. */
static bool add_class(struct builder *builder, uint32_t from, uint32_t to) {
    const uint32_t space = builder->problem->lifetimes->rows[builder->order[from].index].space;
    struct arena *arena = &builder->problem->arenas[space];
    struct staircase *staircase = &builder->staircase;
    struct piece *out = arena->pieces + builder->pieces[space];
    if (to - from == 1) {
        *out = piece_of_row(builder, builder->order[from].index);
        builder->pieces[space]++;
        return true;
    }
    if (!staircase_reserve(staircase, to - from))
        return false;
    staircase->count = to - from;
    for (uint32_t i = from; i < to; i++)
        staircase->rows[i - from] = piece_of_row(builder, builder->order[i].index);
    builder->pieces[space] += staircase_outline(staircase, out);
    return true;
}

static bool add_pieces(struct builder *builder) {
    const uint32_t count = builder->problem->lifetimes->count;
    const uint32_t *leader = builder->classes.leader;
    uint32_t to;
    for (uint32_t from = 0; from < count; from = to) {
        const struct keyed first = builder->order[from];
        const uint32_t space = (uint32_t)(first.key >> 32);
        for (to = from + 1; to < count && builder->order[to].key == first.key &&
                            leader[builder->order[to].index] == leader[first.index];)
            to++;
        if (!add_class(builder, from, to))
            return false;
        builder->problem->arenas[space].first[(uint32_t)first.key + 1] = builder->pieces[space];
    }
    watch_add(count);
    return true;
}

static bool pin_row(struct builder *builder, uint32_t row) {
    const struct problem *problem = builder->problem;
    const struct lifetimes *lifetimes = problem->lifetimes;
    const struct lifetime *r = &lifetimes->rows[row];
    uint64_t *pin = &problem->arenas[r->space].pins[problem->item[row]];
    uint64_t size = 0;
    char text[ROW_TEXT];
    const char *where = lifetimes_row_text(lifetimes, row, text);
    plan_round_up(r->size, problem->align, &size);
    if (r->pin % problem->align != 0)
        return plan_fail(builder->error, "%s: %s: offset %" PRIu64 " is not a multiple of %" PRIu64,
                         lifetimes->path, where, r->pin, problem->align);
    if (r->pin > PLAN_MOST_BYTES - size)
        return plan_fail(builder->error, "%s: %s: offset %" PRIu64 " and size end above 2^63",
                         lifetimes->path, where, r->pin);
    if (r->pin < problem->place[row])
        return plan_fail(builder->error,
                         "%s: %s: offset %" PRIu64 " puts the start of its group below 0",
                         lifetimes->path, where, r->pin);
    if (*pin != NOT_PINNED && *pin != r->pin - problem->place[row])
        return plan_fail(builder->error,
                         "%s: %s: offset %" PRIu64
                         " contradicts that of another row of its group or alias",
                         lifetimes->path, where, r->pin);
    *pin = r->pin - problem->place[row];
    return true;
}

static bool pin_items(struct builder *builder) {
    const struct lifetimes *lifetimes = builder->problem->lifetimes;
    for (uint32_t i = 0; i < lifetimes->count; i++)
        if (lifetimes->rows[i].pin != NOT_PINNED && !pin_row(builder, i))
            return false;
    return true;
}

static struct interval hull_of(const struct arena *arena, uint32_t item) {
    struct interval hull = {UINT64_MAX, 0, 0};
    for (uint32_t p = arena->first[item]; p < arena->first[item + 1]; p++) {
        const struct piece *piece = &arena->pieces[p];
        hull.birth = bfc_min(hull.birth, piece->birth);
        hull.death = bfc_max(hull.death, piece->death);
        hull.size = bfc_max(hull.size, piece->place + piece->size);
    }
    if (arena->streams)
        hull.death =
            hull.death > UINT64_MAX - 1 - arena->gap ? UINT64_MAX : hull.death + arena->gap + 1;
    return hull;
}

static bool number_sections(struct arena *arena, struct interval *intervals, struct sweep *sweep) {
    for (uint32_t i = 0; i < arena->count; i++)
        intervals[i] = hull_of(arena, i);
    if (!sweep_run(sweep, intervals, arena->count))
        return false;
    for (uint32_t i = 0; i < arena->count; i++) {
        arena->boxes[i] = (struct box){sweep->birth[i], sweep->death[i], intervals[i].size};
        arena->spans[i] = intervals[i].death - intervals[i].birth;
    }
    arena->sections = sweep->sections;
    watch_add(arena->count);
    return true;
}

/* Sets the arena's lower bound: the most bytes that are live at any time, or the end of the highest
 * pinned item if that is higher. */
static bool find_bound(struct arena *arena, struct interval *intervals, uint32_t *most_row) {
    const uint32_t count = arena->first[arena->count];
    struct sweep sweep = {0};
    for (uint32_t p = 0; p < count; p++)
        intervals[p] = (struct interval){arena->pieces[p].birth, arena->pieces[p].death,
                                         arena->pieces[p].size};
    if (!sweep_run(&sweep, intervals, count))
        return false;
    arena->bound = sweep.most;
    watch_add(count);
    *most_row = count > 0 ? arena->pieces[sweep.most_at].row : 0;
    for (uint32_t i = 0; arena->pins && i < arena->count; i++)
        if (arena->pins[i] != NOT_PINNED)
            arena->bound = bfc_max(arena->bound, arena->pins[i] + arena->boxes[i].size);
    return true;
}

static bool any_pin(const struct arena *arena) {
    for (uint32_t i = 0; arena->pins && i < arena->count; i++)
        if (arena->pins[i] != NOT_PINNED)
            return true;
    return false;
}

static bool finish_arena(struct builder *builder, struct arena *arena) {
    const struct lifetimes *lifetimes = builder->problem->lifetimes;
    const size_t pieces = arena->first[arena->count];
    uint32_t most_row = 0;
    if (!any_pin(arena)) {
        free(arena->pins);
        arena->pins = NULL;
    }
    arena->exact = pieces == arena->count && !arena->streams && !arena->pins;
    struct interval *intervals = malloc((pieces + arena->count + 1) * sizeof *intervals);
    struct sweep sweep = {.birth = malloc(((size_t)arena->count + 1) * sizeof(uint32_t)),
                          .death = malloc(((size_t)arena->count + 1) * sizeof(uint32_t))};
    const bool good = intervals && sweep.birth && sweep.death &&
                      number_sections(arena, intervals, &sweep) &&
                      find_bound(arena, intervals, &most_row);
    free(intervals);
    free(sweep.birth);
    free(sweep.death);
    char text[ROW_TEXT];
    if (!good)
        return plan_fail_memory(builder->error);
    if (arena->bound > PLAN_MOST_BYTES)
        return plan_fail(builder->error,
                         "%s: %s: together with the rows alive then it needs more than 2^63 bytes",
                         lifetimes->path, lifetimes_row_text(lifetimes, most_row, text));
    return true;
}

static bool build_arenas(struct builder *builder, uint64_t gap) {
    struct problem *problem = builder->problem;
    const struct lifetimes *lifetimes = problem->lifetimes;
    if (!classes_build(&builder->classes, lifetimes, problem->align, builder->error))
        return false;
    if (!allocate_arenas(builder) || !order_rows(builder) || !add_pieces(builder))
        return plan_fail_memory(builder->error);
    if (lifetimes->has_pin && !pin_items(builder))
        return false;
    for (uint32_t s = 0; s < problem->count; s++) {
        problem->arenas[s].gap = gap;
        problem->arenas[s].streams = lifetimes->has_stream;
        if (!finish_arena(builder, &problem->arenas[s]))
            return false;
    }
    return true;
}

bool problem_build(struct problem *problem, const struct lifetimes *lifetimes, uint64_t align,
                   uint64_t gap, struct plan_error *error) {
    *problem = (struct problem){.lifetimes = lifetimes, .align = align};
    struct builder builder = {.problem = problem, .error = error};
    const bool good = build_arenas(&builder, gap);
    classes_free(&builder.classes);
    staircase_free(&builder.staircase);
    free(builder.order);
    free(builder.pieces);
    if (!good)
        problem_free(problem);
    return good;
}

#include "planner/problem/classes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/common/number.h"

void classes_free(struct classes *classes) {
    free(classes->leader);
    free(classes->class_size);
    free(classes->place);
    free(classes->item);
    free(classes->items);
    *classes = (struct classes){0};
}

static uint32_t find_leader(uint32_t *leader, uint32_t row) {
    while (leader[row] != row) {
        leader[row] = leader[leader[row]];
        row = leader[row];
    }
    return row;
}

/* Joins the classes of two rows. The row with the lower index becomes the leader of the joined
 * class, so that classes are ordered by their first rows. */
static void join_classes(uint32_t *leader, uint32_t a, uint32_t b) {
    a = find_leader(leader, a);
    b = find_leader(leader, b);
    if (a < b)
        leader[b] = a;
    else
        leader[a] = b;
}

static void find_leaders(struct classes *classes, const struct lifetimes *lifetimes) {
    for (uint32_t i = 0; i < lifetimes->count; i++)
        classes->leader[i] = i;
    for (uint32_t i = 0; i < lifetimes->count; i++)
        if (lifetimes->rows[i].alias != ROW_NONE)
            join_classes(classes->leader, i, lifetimes->rows[i].alias);
    for (uint32_t i = 0; i < lifetimes->count; i++)
        classes->leader[i] = find_leader(classes->leader, i);
}

static bool fail_pair(const struct lifetimes *lifetimes, uint32_t a, uint32_t b, const char *why,
                      struct plan_error *error) {
    char first[ROW_TEXT], second[ROW_TEXT];
    return plan_fail(error, "%s: %s: %s (the other is %s)", lifetimes->path,
                     lifetimes_row_text(lifetimes, b, second), why,
                     lifetimes_row_text(lifetimes, a, first));
}

static bool size_classes(struct classes *classes, const struct lifetimes *lifetimes, uint64_t align,
                         struct plan_error *error) {
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        const struct lifetime *row = &lifetimes->rows[i];
        const uint32_t leader = classes->leader[i];
        const struct lifetime *first = &lifetimes->rows[leader];
        uint64_t size;
        char text[ROW_TEXT];
        if (!plan_round_up(row->size, align, &size))
            return plan_fail(
                error, "%s: %s: size %" PRIu64 " rounded up to %" PRIu64 " is above 2^63",
                lifetimes->path, lifetimes_row_text(lifetimes, i, text), row->size, align);
        if (row->space != first->space)
            return fail_pair(lifetimes, leader, i, "shares memory with a row of another space",
                             error);
        if (row->stream != first->stream && lifetimes->has_stream)
            return fail_pair(lifetimes, leader, i, "shares memory with a row of another stream",
                             error);
        if (size > classes->class_size[leader])
            classes->class_size[leader] = size;
    }
    return true;
}

/* What is known of a group, rows that lie next to each other in memory, from the rows that were
 * seen so far. */
struct group {
    uint32_t first_row;
    uint32_t item;
    uint64_t end;
};

static bool enter_group(struct classes *classes, const struct lifetimes *lifetimes,
                        struct group *group, uint32_t row, struct plan_error *error) {
    const uint32_t leader = classes->leader[row];
    char text[ROW_TEXT];
    if (group->item == ROW_NONE) {
        group->first_row = row;
        group->item = classes->items[lifetimes->rows[row].space]++;
    }
    if (lifetimes->rows[group->first_row].space != lifetimes->rows[row].space)
        return fail_pair(lifetimes, group->first_row, row, "its group has a row of another space",
                         error);
    classes->item[leader] = group->item;
    classes->place[leader] = group->end;
    if (__builtin_add_overflow(group->end, classes->class_size[leader], &group->end) ||
        group->end > PLAN_MOST_BYTES)
        return plan_fail(error, "%s: %s: its group is larger than 2^63 bytes", lifetimes->path,
                         lifetimes_row_text(lifetimes, row, text));
    return true;
}

static bool enter_groups(struct classes *classes, const struct lifetimes *lifetimes,
                         struct group *groups, uint32_t *class_group, struct plan_error *error) {
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        const uint32_t number = lifetimes->rows[i].group;
        const uint32_t leader = classes->leader[i];
        if (number == ROW_NONE || class_group[leader] == number)
            continue;
        if (class_group[leader] != ROW_NONE)
            return fail_pair(lifetimes, leader, i, "shares memory with a row of another group",
                             error);
        class_group[leader] = number;
        if (!enter_group(classes, lifetimes, &groups[number], i, error))
            return false;
    }
    return true;
}

static bool place_groups(struct classes *classes, const struct lifetimes *lifetimes,
                         struct plan_error *error) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < lifetimes->count; i++)
        if (lifetimes->rows[i].group != ROW_NONE && lifetimes->rows[i].group >= most)
            most = lifetimes->rows[i].group + 1;
    struct group *groups = malloc((most + 1) * sizeof *groups);
    uint32_t *class_group = malloc((lifetimes->count + (size_t)1) * sizeof *class_group);
    bool good = groups && class_group;
    if (!good)
        plan_fail_memory(error);
    for (uint32_t g = 0; good && g < most; g++)
        groups[g] = (struct group){ROW_NONE, ROW_NONE, 0};
    if (good) {
        memset(class_group, 0xff, lifetimes->count * sizeof *class_group);
        good = enter_groups(classes, lifetimes, groups, class_group, error);
    }
    free(groups);
    free(class_group);
    return good;
}

static bool make_room(struct classes *classes, const struct lifetimes *lifetimes) {
    const size_t n = (size_t)lifetimes->count + 1;
    classes->leader = malloc(n * sizeof *classes->leader);
    classes->class_size = calloc(n, sizeof *classes->class_size);
    classes->place = calloc(n, sizeof *classes->place);
    classes->item = malloc(n * sizeof *classes->item);
    classes->items = calloc(lifetimes_spaces(lifetimes), sizeof *classes->items);
    return classes->leader && classes->class_size && classes->place && classes->item &&
           classes->items;
}

bool classes_build(struct classes *classes, const struct lifetimes *lifetimes, uint64_t align,
                   struct plan_error *error) {
    *classes = (struct classes){0};
    bool good = make_room(classes, lifetimes) || plan_fail_memory(error);
    if (good) {
        memset(classes->item, 0xff, lifetimes->count * sizeof *classes->item);
        find_leaders(classes, lifetimes);
        good = size_classes(classes, lifetimes, align, error) &&
               (!lifetimes->has_group || place_groups(classes, lifetimes, error));
    }
    for (uint32_t i = 0; good && i < lifetimes->count; i++)
        if (classes->leader[i] == i && classes->item[i] == ROW_NONE)
            classes->item[i] = classes->items[lifetimes->rows[i].space]++;
    if (!good)
        classes_free(classes);
    return good;
}

#include "planner/model/validate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/common/sort.h"
#include "planner/common/watch.h"

#define ROWS_PER_WATCH 4096

/* What a node of the tree knows of the rows that use some addresses. `first` is the row that dies
 * last. `second` is the row that dies last among the rows whose kind is not that of `first`. A
 * row's kind is its class (the rows with which it shares memory) in one tree, and its stream in the
 * other. */
struct latest {
    uint32_t first;
    uint32_t second;
};

/* A segment tree over ranges of addresses. For each node, `all` is about the rows that cover all
 * addresses of the node, and `any` about the rows that cover at least one of them. */
struct tree {
    struct latest *all;
    struct latest *any;
    uint32_t leaves;
};

struct validator {
    const struct lifetimes *lifetimes;
    const uint64_t *offsets;
    uint64_t align;
    uint64_t gap;
    struct plan_error *error;
    /* by row: the first row of those with which the row shares memory, which identifies this class
     * of rows */
    uint32_t *class_of;
    /* by first row of a class: the size of the class's largest row in bytes, rounded up to
     * `align` */
    uint64_t *class_size;
    struct keyed *order; /* the rows whose size is not 0, by space, and by birth within a space */
    uint32_t count;      /* how many elements `order` has */
    uint64_t *cuts; /* the addresses at which the rows of a space begin or end, in rising order */
    uint32_t cuts_count;
    struct tree classes;
    struct tree streams;
};

static uint64_t round_size(uint64_t size, uint64_t align) {
    return size % align == 0 ? size : size + (align - size % align);
}

static uint64_t end_of(const struct validator *v, uint32_t row) {
    return v->offsets[row] + round_size(v->lifetimes->rows[row].size, v->align);
}

static uint32_t root_of(uint32_t *class_of, uint32_t row) {
    for (; class_of[row] != row; row = class_of[row])
        class_of[row] = class_of[class_of[row]];
    return row;
}

static void find_classes(struct validator *v) {
    const struct lifetimes *lifetimes = v->lifetimes;
    for (uint32_t i = 0; i < lifetimes->count; i++)
        v->class_of[i] = i;
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        if (lifetimes->rows[i].alias == ROW_NONE)
            continue;
        const uint32_t a = root_of(v->class_of, i);
        const uint32_t b = root_of(v->class_of, lifetimes->rows[i].alias);
        v->class_of[a > b ? a : b] = a > b ? b : a;
    }
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        const uint32_t root = root_of(v->class_of, i);
        const uint64_t size = round_size(lifetimes->rows[i].size, v->align);
        v->class_of[i] = root;
        v->class_size[root] = size > v->class_size[root] ? size : v->class_size[root];
    }
}

static bool fail_row(struct validator *v, uint32_t row, const char *why, uint64_t expected) {
    char text[ROW_TEXT];
    return plan_fail(v->error, "%s: %s: offset %" PRIu64 " %s %" PRIu64, v->lifetimes->path,
                     lifetimes_row_text(v->lifetimes, row, text), v->offsets[row], why, expected);
}

static bool check_rows(struct validator *v) {
    for (uint32_t i = 0; i < v->lifetimes->count; i++) {
        const struct lifetime *row = &v->lifetimes->rows[i];
        if (v->offsets[i] % v->align != 0)
            return fail_row(v, i, "is not a multiple of", v->align);
        if (round_size(row->size, v->align) < row->size ||
            v->offsets[i] > UINT64_MAX - round_size(row->size, v->align))
            return fail_row(v, i, "ends above 2^64 with size", row->size);
        if (row->pin != NOT_PINNED && row->pin != v->offsets[i])
            return fail_row(v, i, "is not the given one,", row->pin);
        if (row->alias != ROW_NONE && v->offsets[row->alias] != v->offsets[i])
            return fail_row(v, i, "is not that of its alias,", v->offsets[row->alias]);
    }
    return true;
}

/* Checks that in each group each row begins where the row before it ends. A row that shares memory
 * with an earlier row of the group is skipped. */
static bool check_groups(struct validator *v, uint64_t *ends, bool *begun, bool *seen) {
    for (uint32_t i = 0; i < v->lifetimes->count; i++) {
        const uint32_t group = v->lifetimes->rows[i].group;
        const uint32_t class_of = v->class_of[i];
        if (group == ROW_NONE || seen[class_of])
            continue;
        seen[class_of] = true;
        if (begun[group] && v->offsets[i] != ends[group])
            return fail_row(v, i, "does not follow the row before in its group, which ends at",
                            ends[group]);
        begun[group] = true;
        ends[group] = v->offsets[i] + v->class_size[class_of];
    }
    return true;
}

static bool check_all_groups(struct validator *v) {
    const size_t n = (size_t)v->lifetimes->count + 1;
    uint64_t *ends = calloc(n, sizeof *ends);
    bool *begun = calloc(n, sizeof *begun);
    bool *seen = calloc(n, sizeof *seen);
    const bool good =
        ends && begun && seen ? check_groups(v, ends, begun, seen) : plan_fail_memory(v->error);
    free(ends);
    free(begun);
    free(seen);
    return good;
}

static uint32_t kind_of(const struct validator *v, bool by_stream, uint32_t row) {
    return by_stream ? v->lifetimes->rows[row].stream : v->class_of[row];
}

static void note_latest(const struct validator *v, bool by_stream, struct latest *at,
                        uint32_t row) {
    const struct lifetime *rows = v->lifetimes->rows;
    const uint32_t kind = kind_of(v, by_stream, row);
    if (at->first == ROW_NONE || kind_of(v, by_stream, at->first) == kind) {
        if (at->first == ROW_NONE || rows[row].death > rows[at->first].death)
            at->first = row;
    } else if (rows[row].death > rows[at->first].death) {
        at->second = at->first;
        at->first = row;
    } else if (at->second == ROW_NONE || rows[row].death > rows[at->second].death) {
        at->second = row;
    }
}

static void tree_put(const struct validator *v, struct tree *tree, bool by_stream, uint32_t from,
                     uint32_t to, uint32_t row) {
    uint32_t a = from + tree->leaves, b = to + tree->leaves;
    for (; a < b; a /= 2, b /= 2) {
        if (a & 1)
            note_latest(v, by_stream, &tree->all[a++], row);
        if (b & 1)
            note_latest(v, by_stream, &tree->all[--b], row);
    }
    for (a = from + tree->leaves; a > 0; a /= 2)
        note_latest(v, by_stream, &tree->any[a], row);
    for (b = to - 1 + tree->leaves; b > 0; b /= 2)
        note_latest(v, by_stream, &tree->any[b], row);
    for (a = from + tree->leaves, b = to + tree->leaves; a < b; a /= 2, b /= 2) {
        if (a & 1)
            note_latest(v, by_stream, &tree->any[a++], row);
        if (b & 1)
            note_latest(v, by_stream, &tree->any[--b], row);
    }
}

/* Returns the row that dies last among `found`, `at.first` and `at.second`. Of the latter two it
 * skips a row of the same kind as `row`: of the same stream if by_stream is true, else of its
 * class. */
static uint32_t find_later(const struct validator *v, bool by_stream, struct latest at,
                           uint32_t row, uint32_t found) {
    const struct lifetime *rows = v->lifetimes->rows;
    uint32_t other = at.first;
    if (other != ROW_NONE && kind_of(v, by_stream, other) == kind_of(v, by_stream, row))
        other = at.second;
    if (other == ROW_NONE || (found != ROW_NONE && rows[found].death >= rows[other].death))
        return found;
    return other;
}

/* Returns the row that dies last among the rows in the tree that use some of the addresses from
 * `from` to before `to`, except those of the same kind as `row`. ROW_NONE: there is none. */
static uint32_t tree_find(const struct validator *v, const struct tree *tree, bool by_stream,
                          uint32_t from, uint32_t to, uint32_t row) {
    uint32_t found = ROW_NONE;
    uint32_t a = from + tree->leaves, b = to + tree->leaves;
    for (; a < b; a /= 2, b /= 2) {
        if (a & 1)
            found = find_later(v, by_stream, tree->any[a++], row, found);
        if (b & 1)
            found = find_later(v, by_stream, tree->any[--b], row, found);
    }
    for (a = from + tree->leaves; a > 0; a /= 2)
        found = find_later(v, by_stream, tree->all[a], row, found);
    for (b = to - 1 + tree->leaves; b > 0; b /= 2)
        found = find_later(v, by_stream, tree->all[b], row, found);
    return found;
}

static void tree_clear(struct tree *tree, uint32_t stretches) {
    tree->leaves = 1;
    while (tree->leaves < stretches)
        tree->leaves *= 2;
    memset(tree->all, 0xff, (size_t)tree->leaves * 2 * sizeof *tree->all);
    memset(tree->any, 0xff, (size_t)tree->leaves * 2 * sizeof *tree->any);
}

static bool tree_create(struct tree *tree, uint32_t rows) {
    size_t leaves = 1;
    while (leaves < (size_t)rows * 2)
        leaves *= 2;
    tree->all = malloc(leaves * 2 * sizeof *tree->all);
    tree->any = malloc(leaves * 2 * sizeof *tree->any);
    return tree->all && tree->any;
}

static bool fail_overlap(struct validator *v, uint32_t row, uint32_t other, const char *why) {
    char one[ROW_TEXT], two[ROW_TEXT];
    return plan_fail(
        v->error, "%s: %s at offset %" PRIu64 " and %s at offset %" PRIu64 " overlap%s",
        v->lifetimes->path, lifetimes_row_text(v->lifetimes, other, one), v->offsets[other],
        lifetimes_row_text(v->lifetimes, row, two), v->offsets[row], why);
}

static uint32_t cut_at(const struct validator *v, uint64_t address) {
    uint32_t lo = 0, hi = v->cuts_count;
    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (v->cuts[middle] < address)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static bool check_row(struct validator *v, uint32_t row) {
    const struct lifetime *rows = v->lifetimes->rows;
    const uint64_t birth = rows[row].birth;
    const uint32_t from = cut_at(v, v->offsets[row]);
    const uint32_t to = cut_at(v, end_of(v, row));
    uint32_t other = tree_find(v, &v->classes, false, from, to, row);
    if (other != ROW_NONE && rows[other].death > birth)
        return fail_overlap(v, row, other, "");
    tree_put(v, &v->classes, false, from, to, row);
    if (!v->lifetimes->has_stream || rows[row].stream == ROW_NONE)
        return true;
    other = tree_find(v, &v->streams, true, from, to, row);
    if (other != ROW_NONE && (birth <= rows[other].death || birth - rows[other].death <= v->gap))
        return fail_overlap(v, row, other, " too soon after each other for two streams");
    tree_put(v, &v->streams, true, from, to, row);
    return true;
}

/* Fills in v->cuts with the addresses at which the rows order[from] to order[to - 1] begin and
 * end. */
static bool cut_addresses(struct validator *v, uint32_t from, uint32_t to) {
    const uint32_t n = (to - from) * 2;
    struct keyed *keyed = malloc(n * sizeof *keyed);
    bool good = keyed;
    for (uint32_t i = from; good && i < to; i++) {
        keyed[2 * (i - from)] = (struct keyed){v->offsets[v->order[i].index], 0};
        keyed[2 * (i - from) + 1] = (struct keyed){end_of(v, v->order[i].index), 0};
    }
    good = good && sort_keyed(keyed, n);
    watch_add((to - from) / 2);
    v->cuts_count = 0;
    for (uint32_t i = 0; good && i < n; i++)
        if (i == 0 || keyed[i].key != keyed[i - 1].key)
            v->cuts[v->cuts_count++] = keyed[i].key;
    free(keyed);
    return good;
}

static bool check_space(struct validator *v, uint32_t from, uint32_t to) {
    if (!cut_addresses(v, from, to))
        return plan_fail_memory(v->error);
    tree_clear(&v->classes, v->cuts_count);
    if (v->lifetimes->has_stream)
        tree_clear(&v->streams, v->cuts_count);
    for (uint32_t i = from; i < to; i++) {
        if (!check_row(v, v->order[i].index))
            return false;
        if (i % ROWS_PER_WATCH == 0)
            watch_add(ROWS_PER_WATCH * (VALIDATE_STEPS - 1));
    }
    return true;
}

/* Orders the rows by space, and by birth within a space. It sorts by birth first: the sort by space
 * is stable, and so it keeps the order of births. */
static bool order_rows(struct validator *v, bool pinned_only) {
    const struct lifetime *rows = v->lifetimes->rows;
    v->count = 0;
    for (uint32_t i = 0; i < v->lifetimes->count; i++)
        if (rows[i].size > 0 && (!pinned_only || rows[i].pin != NOT_PINNED))
            v->order[v->count++] = (struct keyed){rows[i].birth, i};
    if (!sort_keyed(v->order, v->count))
        return false;
    for (uint32_t i = 0; i < v->count; i++)
        v->order[i].key = rows[v->order[i].index].space;
    watch_add(v->count / 2);
    return sort_keyed(v->order, v->count);
}

static bool check_overlaps(struct validator *v, bool pinned_only) {
    if (!order_rows(v, pinned_only))
        return plan_fail_memory(v->error);
    uint32_t to;
    for (uint32_t from = 0; from < v->count; from = to) {
        for (to = from + 1; to < v->count && v->order[to].key == v->order[from].key;)
            to++;
        if (!check_space(v, from, to))
            return false;
    }
    return true;
}

static bool create_validator(struct validator *v) {
    const size_t n = (size_t)v->lifetimes->count + 1;
    v->class_of = malloc(n * sizeof *v->class_of);
    v->class_size = calloc(n, sizeof *v->class_size);
    v->order = malloc(n * sizeof *v->order);
    v->cuts = malloc(n * 2 * sizeof *v->cuts);
    return v->class_of && v->class_size && v->order && v->cuts &&
           tree_create(&v->classes, v->lifetimes->count) &&
           (!v->lifetimes->has_stream || tree_create(&v->streams, v->lifetimes->count));
}

static void destroy_validator(struct validator *v) {
    free(v->class_of);
    free(v->class_size);
    free(v->order);
    free(v->cuts);
    free(v->classes.all);
    free(v->classes.any);
    free(v->streams.all);
    free(v->streams.any);
}

static void find_peaks(const struct validator *v, uint64_t *peaks) {
    const struct lifetimes *lifetimes = v->lifetimes;
    memset(peaks, 0, (lifetimes->spaces.count + (size_t)1) * sizeof *peaks);
    for (uint32_t i = 0; i < lifetimes->count; i++)
        if (lifetimes->rows[i].size > 0 && end_of(v, i) > peaks[lifetimes->rows[i].space])
            peaks[lifetimes->rows[i].space] = end_of(v, i);
}

bool validate(const struct lifetimes *lifetimes, const uint64_t *offsets, uint64_t align,
              uint64_t gap, uint64_t *peaks, struct plan_error *error) {
    struct validator v = {
        .lifetimes = lifetimes, .offsets = offsets, .align = align, .gap = gap, .error = error};
    bool good = create_validator(&v) || plan_fail_memory(error);
    if (good) {
        find_classes(&v);
        good = check_rows(&v) && check_all_groups(&v) && check_overlaps(&v, false);
    }
    if (good)
        find_peaks(&v, peaks);
    destroy_validator(&v);
    return good;
}

bool validate_pins(const struct lifetimes *lifetimes, uint64_t align, uint64_t gap,
                   struct plan_error *error) {
    uint64_t *pins = malloc(((size_t)lifetimes->count + 1) * sizeof *pins);
    struct validator v = {
        .lifetimes = lifetimes, .offsets = pins, .align = align, .gap = gap, .error = error};
    bool good = (pins && create_validator(&v)) || plan_fail_memory(error);
    for (uint32_t i = 0; good && i < lifetimes->count; i++)
        pins[i] = lifetimes->rows[i].pin;
    if (good) {
        find_classes(&v);
        good = check_overlaps(&v, true);
    }
    destroy_validator(&v);
    free(pins);
    return good;
}

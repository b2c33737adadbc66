#include "planner/pack/valley.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/numbers.h"
#include "planner/common/watch.h"

/* how many boxes a packing places between two looks at the flag by which it is told to stop */
#define BOXES_PER_LOOK 4096

struct node {
    uint32_t death; /* the earliest death among the unplaced boxes below this node of the tree */
    uint32_t rank;  /* the lowest rank among the unplaced boxes below this node */
};

struct level {
    uint64_t height;
    uint32_t left;
    /* The segment's stamp when this entry of the heap was made. If the segment has another stamp
     * now, it has changed since, and the entry is ignored. */
    uint32_t stamp;
};

/* A range of sections in which the skyline (the top of the boxes placed so far) has one height.
 * Segments are stored at the index of their leftmost section. */
struct segment {
    uint64_t height;
    uint32_t right; /* the first section to the right of the segment */
    uint32_t stamp;
};

struct valley {
    /* a binary tree over the boxes in the order of births; its leaves begin at index `leaves` */
    struct node *tree;
    uint32_t leaves;
    /* by section of time: index of the first box that is born in the section or later */
    uint32_t *first_at;
    /* by section of time: if a segment ends right before the section, the first section of that
     * segment; else undefined */
    uint32_t *left_of;
    struct segment *segments;
    struct level *heap;
    size_t heap_used;
    uint32_t sections;
};

struct valley *valley_create(uint32_t boxes, uint32_t sections) {
    struct valley *valley = calloc(1, sizeof *valley);
    if (!valley)
        return NULL;
    uint32_t leaves = 1;
    while (leaves < boxes)
        leaves *= 2;
    /* The most entries that are ever pushed: a placed box pushes at most three segments. Raising a
     * segment pushes one more, but joins it to a neighbour, so each segment is raised at most
     * once. */
    const size_t pushes = 6 * (size_t)boxes + 4;
    valley->tree = malloc((size_t)leaves * 2 * sizeof *valley->tree);
    valley->first_at = malloc(((size_t)sections + 1) * sizeof *valley->first_at);
    valley->left_of = malloc(((size_t)sections + 1) * sizeof *valley->left_of);
    valley->segments = malloc(((size_t)sections + 1) * sizeof *valley->segments);
    valley->heap = malloc(pushes * sizeof *valley->heap);
    if (!valley->tree || !valley->first_at || !valley->left_of || !valley->segments ||
        !valley->heap) {
        valley_destroy(valley);
        return NULL;
    }
    return valley;
}

void valley_destroy(struct valley *valley) {
    if (!valley)
        return;
    free(valley->tree);
    free(valley->first_at);
    free(valley->left_of);
    free(valley->segments);
    free(valley->heap);
    free(valley);
}

static bool is_lower(const struct level *a, const struct level *b) {
    return a->height != b->height ? a->height < b->height : a->left < b->left;
}

static void heap_push(struct valley *v, uint32_t left) {
    const struct level entry = {v->segments[left].height, left, ++v->segments[left].stamp};
    size_t at = v->heap_used++;
    while (at > 0 && is_lower(&entry, &v->heap[(at - 1) / 2])) {
        v->heap[at] = v->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    v->heap[at] = entry;
}

static struct level heap_pop(struct valley *v) {
    const struct level top = v->heap[0];
    const struct level entry = v->heap[--v->heap_used];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= v->heap_used)
            break;
        if (child + 1 < v->heap_used && is_lower(&v->heap[child + 1], &v->heap[child]))
            child++;
        if (!is_lower(&v->heap[child], &entry))
            break;
        v->heap[at] = v->heap[child];
        at = child;
    }
    v->heap[at] = entry;
    return top;
}

static struct node join_nodes(struct node a, struct node b) {
    return (struct node){a.death < b.death ? a.death : b.death, a.rank < b.rank ? a.rank : b.rank};
}

static void build_tree(struct valley *v, const struct box *boxes, uint32_t n,
                       const uint32_t *rank) {
    v->leaves = 1;
    while (v->leaves < n)
        v->leaves *= 2;
    for (uint32_t i = 0; i < v->leaves; i++)
        v->tree[v->leaves + i] =
            i < n ? (struct node){boxes[i].death, rank[i]} : (struct node){NO_BOX, NO_BOX};
    for (uint32_t node = v->leaves; node-- > 1;)
        v->tree[node] = join_nodes(v->tree[2 * node], v->tree[2 * node + 1]);
}

static void take_out(struct valley *v, uint32_t box) {
    uint32_t node = v->leaves + box;
    v->tree[node] = (struct node){NO_BOX, NO_BOX};
    while (node > 1) {
        node /= 2;
        v->tree[node] = join_nodes(v->tree[2 * node], v->tree[2 * node + 1]);
    }
}

static bool is_promising(const struct node *node, uint32_t death, uint32_t best) {
    return node->death <= death && node->rank < best;
}

/* Of the unplaced boxes below the node `top` that are alive only in sections before `death`, finds
 * the one of the lowest rank. Writes *best and *found only if that rank is below *best. */
static void search_below(const struct valley *v, uint32_t top, uint32_t death, uint32_t *best,
                         uint32_t *found) {
    uint32_t stack[66];
    int depth = 0;
    stack[depth++] = top;
    while (depth > 0) {
        const uint32_t node = stack[--depth];
        if (!is_promising(&v->tree[node], death, *best))
            continue;
        if (node >= v->leaves) {
            *best = v->tree[node].rank;
            *found = node - v->leaves;
            continue;
        }
        const uint32_t better = v->tree[2 * node].rank < v->tree[2 * node + 1].rank ? 0 : 1;
        stack[depth++] = 2 * node + (better ^ 1);
        stack[depth++] = 2 * node + better;
    }
}

/* Returns the unplaced box of the lowest rank that is alive only from section `birth` to before
 * section `death`, or NO_BOX. */
static uint32_t best_within(const struct valley *v, uint32_t birth, uint32_t death) {
    uint32_t best = NO_BOX, found = NO_BOX;
    uint32_t a = v->first_at[birth] + v->leaves;
    uint32_t b = v->first_at[death] + v->leaves;
    for (; a < b; a /= 2, b /= 2) {
        if (a & 1)
            search_below(v, a++, death, &best, &found);
        if (b & 1)
            search_below(v, --b, death, &best, &found);
    }
    return found;
}

static void lay_segment(struct valley *v, uint32_t left, uint32_t right, uint64_t height) {
    v->segments[left].height = height;
    v->segments[left].right = right;
    v->left_of[right] = left;
}

/* Makes the sections from `left` to before `right` one segment of this height, joined with the
 * segments beside it that have the same height. */
static void join_segment(struct valley *v, uint32_t left, uint32_t right, uint64_t height) {
    if (right < v->sections && v->segments[right].height == height) {
        v->segments[right].stamp++;
        right = v->segments[right].right;
    }
    if (left > 0 && v->segments[v->left_of[left]].height == height) {
        v->segments[left].stamp++;
        left = v->left_of[left];
    }
    lay_segment(v, left, right, height);
    heap_push(v, left);
}

static void lay_box(struct valley *v, uint32_t left, const struct box *box) {
    const struct segment segment = v->segments[left];
    v->segments[left].stamp++;
    if (box->birth > left) {
        lay_segment(v, left, box->birth, segment.height);
        heap_push(v, left);
    }
    if (box->death < segment.right) {
        v->segments[box->death].stamp++;
        lay_segment(v, box->death, segment.right, segment.height);
        heap_push(v, box->death);
    }
    join_segment(v, box->birth, box->death, segment.height + box->size);
}

/* Raises the segment to the height of the lower one of its neighbours, because no box fits into it.
 * False: it has no neighbour, as it is the whole skyline. */
static bool raise_segment(struct valley *v, uint32_t left) {
    const uint32_t right = v->segments[left].right;
    const uint64_t before = left > 0 ? v->segments[v->left_of[left]].height : UINT64_MAX;
    const uint64_t after = right < v->sections ? v->segments[right].height : UINT64_MAX;
    if (left == 0 && right == v->sections)
        return false;
    join_segment(v, left, right, bfc_min(before, after));
    return true;
}

static void start_skyline(struct valley *v, const struct box *boxes, uint32_t n,
                          uint32_t sections) {
    uint32_t box = 0;
    for (uint32_t s = 0; s <= sections; s++) {
        while (box < n && boxes[box].birth < s)
            box++;
        v->first_at[s] = box;
    }
    for (uint32_t s = 0; s <= sections; s++)
        v->segments[s].stamp = 0;
    v->sections = sections;
    v->heap_used = 0;
    lay_segment(v, 0, sections, 0);
    heap_push(v, 0);
}

/* Returns whether packing may go on, when `left_over` boxes are not placed yet. Each time that
 * BOXES_PER_LOOK more boxes have been placed, counts them as steps of progress (watch.h) and reads
 * *stop. False: *stop is true. */
static bool may_go_on(uint32_t left_over, const bool *stop) {
    if (left_over % BOXES_PER_LOOK != 0)
        return true;
    watch_add(BOXES_PER_LOOK);
    return !stop || !bfc_load_relaxed(stop) /* reading an old value only delays the stop */;
}

static struct valley_result fill_up(struct valley *v, const struct box *boxes, uint32_t *left_over,
                                    uint64_t limit, const bool *stop, uint64_t *offsets) {
    struct valley_result result = {0, NO_BOX, false};
    while (*left_over > 0) {
        const struct level top = heap_pop(v);
        if (top.stamp != v->segments[top.left].stamp)
            continue;
        const uint32_t box = best_within(v, top.left, v->segments[top.left].right);
        if (box == NO_BOX) {
            if (!raise_segment(v, top.left))
                return result;
            continue;
        }
        if (top.height > limit || boxes[box].size > limit - top.height) {
            result.failed = box;
            return result;
        }
        offsets[box] = top.height;
        result.peak = bfc_max(result.peak, top.height + boxes[box].size);
        take_out(v, box);
        lay_box(v, top.left, &boxes[box]);
        if (!may_go_on(--*left_over, stop))
            return result;
    }
    result.done = true;
    return result;
}

struct valley_result valley_pack(struct valley *v, const struct box *boxes, uint32_t n,
                                 uint32_t sections, const uint32_t *rank, uint64_t limit,
                                 const bool *stop, uint64_t *offsets) {
    uint32_t left_over = n;
    build_tree(v, boxes, n, rank);
    start_skyline(v, boxes, n, sections);
    const struct valley_result result = fill_up(v, boxes, &left_over, limit, stop, offsets);
    watch_add(left_over);
    return result;
}

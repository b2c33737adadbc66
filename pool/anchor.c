/* Anchors: the treap over them. */
#include "pool/anchor.h"

bool anchors_open(struct anchors *anchors, uint64_t most_blocks) {
    if (!host_array_reserve(&anchors->memory, (most_blocks + 1) * sizeof(struct anchor)))
        return false;
    anchors->all = (struct anchor *)(void *)anchors->memory.base;
    anchors->high = 1;
    return host_array_commit(&anchors->memory, sizeof(struct anchor));
}

void anchors_close(struct anchors *anchors) {
    host_array_drop(&anchors->memory);
}

void anchors_reset(struct anchors *anchors) {
    anchors->high = 1;
    anchors->vacant = 0;
    host_array_give_back(&anchors->memory, sizeof(struct anchor));
}

/* A treap's random priority: a hash of the index, so it need not be stored. */
static uint32_t priority(anchor_index c) {
    uint32_t x = c * UINT32_C(0x9e3779b1);
    x ^= x >> 15;
    x *= UINT32_C(0x85ebca77);
    return x ^ x >> 13;
}

/* In order of address; a region's head comes before its first block. */
static bool precedes(const struct block *a, const struct block *b) {
    if (block_start(a) != block_start(b))
        return block_start(a) < block_start(b);
    return block_state(a) == BLOCK_HEAD && block_state(b) != BLOCK_HEAD;
}

static const struct block *block_at(const struct anchors *anchors, const struct block *blocks,
                                    anchor_index a) {
    return &blocks[anchors->all[a].block];
}

static anchor_index take_vacant(struct anchors *anchors) {
    anchor_index a = anchors->vacant;
    if (a) {
        anchors->vacant = anchors->all[a].lower;
        return a;
    }
    uint64_t bytes = ((uint64_t)anchors->high + 1) * sizeof(struct anchor);
    return host_array_commit(&anchors->memory, bytes) ? anchors->high++ : 0;
}

/* Cuts the tree at `tree` into those before `key` and those after. */
static void cut(struct anchors *anchors, const struct block *blocks, anchor_index tree,
                const struct block *key, anchor_index *below, anchor_index *above) {
    while (tree) {
        struct anchor *t = &anchors->all[tree];
        if (precedes(&blocks[t->block], key)) {
            *below = tree;
            below = &t->higher;
            tree = t->higher;
        } else {
            *above = tree;
            above = &t->lower;
            tree = t->lower;
        }
    }
    *below = *above = 0;
}

bool anchors_add(struct anchors *anchors, const struct block *blocks, block_index b,
                 region_index region) {
    anchor_index a = take_vacant(anchors), *at = &anchors->root;
    anchors->refused |= !a;
    if (!a)
        return false;
    struct anchor *added = &anchors->all[a];
    *added = (struct anchor){.block = b, .region = region};
    while (*at && priority(*at) >= priority(a))
        at = precedes(block_at(anchors, blocks, *at), &blocks[b]) ? &anchors->all[*at].higher
                                                                  : &anchors->all[*at].lower;
    cut(anchors, blocks, *at, &blocks[b], &added->lower, &added->higher);
    *at = a;
    anchors->count++;
    return true;
}

/* Joins two trees, all of `below` lower than all of `above`, at *at. */
static void join(struct anchors *anchors, anchor_index *at, anchor_index below,
                 anchor_index above) {
    while (below && above) {
        if (priority(below) >= priority(above)) {
            *at = below;
            at = &anchors->all[below].higher;
            below = *at;
        } else {
            *at = above;
            at = &anchors->all[above].lower;
            above = *at;
        }
    }
    *at = below ? below : above;
}

/* The link, from `at` on, that leads to the block's anchor, or to where it would be. */
static anchor_index *link_to(anchor_index *at, struct anchor *all, const struct block *blocks,
                             block_index b) {
    while (*at && all[*at].block != b)
        at = precedes(&blocks[all[*at].block], &blocks[b]) ? &all[*at].higher : &all[*at].lower;
    return at;
}

void anchors_remove(struct anchors *anchors, const struct block *blocks, block_index b) {
    anchor_index *at = link_to(&anchors->root, anchors->all, blocks, b), a = *at;
    if (!a)
        return;
    struct anchor *gone = &anchors->all[a];
    join(anchors, at, gone->lower, gone->higher);
    *gone = (struct anchor){.lower = anchors->vacant};
    anchors->vacant = a;
    anchors->count--;
}

anchor_index anchors_of(const struct anchors *anchors, const struct block *blocks, block_index b) {
    anchor_index root = anchors->root;
    return *link_to(&root, anchors->all, blocks, b);
}

anchor_index anchors_find(const struct anchors *anchors, const struct block *blocks,
                          bfc_addr address) {
    anchor_index found = 0, tree = anchors->root;
    while (tree) {
        bool below = block_start(block_at(anchors, blocks, tree)) <= address;
        found = below ? tree : found;
        tree = below ? anchors->all[tree].higher : anchors->all[tree].lower;
    }
    return found;
}

static bool visit_tree(const struct anchors *anchors, const struct block *blocks, anchor_index tree,
                       bool (*visit)(void *context, const struct anchor *head), void *context) {
    if (!tree)
        return true;
    const struct anchor *a = &anchors->all[tree];
    return visit_tree(anchors, blocks, a->lower, visit, context) &&
           (block_state(&blocks[a->block]) != BLOCK_HEAD || visit(context, a)) &&
           visit_tree(anchors, blocks, a->higher, visit, context);
}

bool anchors_visit(const struct anchors *anchors, const struct block *blocks,
                   bool (*visit)(void *context, const struct anchor *head), void *context) {
    return visit_tree(anchors, blocks, anchors->root, visit, context);
}

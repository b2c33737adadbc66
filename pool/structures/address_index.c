/* Anchors: the treap over them. */
#include "pool/structures/address_index.h"

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

static bfc_addr key_of(const struct block *b) {
    return block_start(b) + (block_state(b) != BLOCK_HEAD);
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

/* Splits the tree at `tree` into the anchors before `key` and those after. */
static void cut(struct anchors *anchors, anchor_index tree, bfc_addr key, anchor_index *below,
                anchor_index *above) {
    while (tree) {
        struct anchor *t = &anchors->all[tree];
        if (t->key < key) {
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

bool anchors_add(struct anchors *anchors, const struct block *b, block_index index,
                 region_index region) {
    anchor_index a = take_vacant(anchors), *at = &anchors->root;
    anchors->refused |= !a;
    if (!a)
        return false;
    struct anchor *all = anchors->all, *added = &all[a];
    *added = (struct anchor){.key = key_of(b), .block = index, .region = region};
    while (*at && priority(*at) >= priority(a))
        at = all[*at].key < added->key ? &all[*at].higher : &all[*at].lower;
    cut(anchors, *at, added->key, &added->lower, &added->higher);
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

/* The link, from `at` on, that leads to the anchor of this key, or to where it would be. */
static anchor_index *link_to(anchor_index *at, struct anchor *all, bfc_addr key) {
    while (*at && all[*at].key != key)
        at = all[*at].key < key ? &all[*at].higher : &all[*at].lower;
    return at;
}

void anchors_remove(struct anchors *anchors, const struct block *b) {
    anchor_index *at = link_to(&anchors->root, anchors->all, key_of(b)), a = *at;
    if (!a)
        return;
    struct anchor *gone = &anchors->all[a];
    join(anchors, at, gone->lower, gone->higher);
    *gone = (struct anchor){.lower = anchors->vacant};
    anchors->vacant = a;
    anchors->count--;
}

void anchors_shift(struct anchors *anchors, bfc_addr from, bfc_addr to) {
    anchor_index a = *link_to(&anchors->root, anchors->all, from + 1);
    if (a)
        anchors->all[a].key = to + 1;
}

anchor_index anchors_of(const struct anchors *anchors, const struct block *b) {
    anchor_index root = anchors->root;
    return *link_to(&root, anchors->all, key_of(b));
}

anchor_index anchors_find(const struct anchors *anchors, bfc_addr address) {
    anchor_index found = 0, tree = anchors->root;
    while (tree) {
        const struct anchor *t = &anchors->all[tree];
        bool below = (t->key & ~(bfc_addr)1) <= address;
        found = below ? tree : found;
        tree = below ? t->higher : t->lower;
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

#include "pool/structures/address_index.h"

bool address_index_open(struct address_index *index, uint64_t most_blocks) {
    uint64_t node = sizeof(struct index_node);
    index->nodes = host_array_open(&index->memory, (most_blocks + 1) * node, node);
    index->high = 1;
    return index->nodes;
}

void address_index_reset(struct address_index *index) {
    index->high = 1;
    index->vacant = 0;
    host_array_give_back(&index->memory, sizeof(struct index_node));
}

/* The random priority of a node in the treap is a hash of its index, so it need not be stored. */
static uint32_t priority_of_node(node_index c) {
    uint32_t x = c * UINT32_C(0x9e3779b1);
    x ^= x >> 15;
    x *= UINT32_C(0x85ebca77);
    return x ^ x >> 13;
}

static bfc_addr key_of(const struct block *b) {
    return block_start(b) + (block_state(b) != BLOCK_HEAD);
}

static node_index take_vacant(struct address_index *index) {
    node_index a = index->vacant;
    if (a) {
        index->vacant = index->nodes[a].lower;
        return a;
    }
    uint64_t bytes = ((uint64_t)index->high + 1) * sizeof(struct index_node);
    return host_array_commit(&index->memory, bytes) ? index->high++ : 0;
}

/* Splits a tree in two: `*below` gets the nodes whose keys are lower than `key`, `*above` the
 * others. */
static void cut_tree(struct address_index *index, node_index tree, bfc_addr key, node_index *below,
                     node_index *above) {
    while (tree) {
        struct index_node *t = &index->nodes[tree];
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

bool address_index_add(struct address_index *index, const struct block *b, block_index record,
                       region_index region) {
    node_index a = take_vacant(index), *at = &index->root;
    index->refused |= !a;
    if (!a)
        return false;
    struct index_node *all = index->nodes, *added = &all[a];
    *added = (struct index_node){.key = key_of(b), .block = record, .region = region};
    while (*at && priority_of_node(*at) >= priority_of_node(a))
        at = all[*at].key < added->key ? &all[*at].higher : &all[*at].lower;
    cut_tree(index, *at, added->key, &added->lower, &added->higher);
    *at = a;
    index->count++;
    return true;
}

/* Joins two trees and sets the link `at` to the result. Every key in `below` is lower than every
 * key in `above`. */
static void join_trees(struct address_index *index, node_index *at, node_index below,
                       node_index above) {
    while (below && above) {
        if (priority_of_node(below) >= priority_of_node(above)) {
            *at = below;
            at = &index->nodes[below].higher;
            below = *at;
        } else {
            *at = above;
            at = &index->nodes[above].lower;
            above = *at;
        }
    }
    *at = below ? below : above;
}

/* Searches the tree whose root is `*at` for the node with this key. Returns the pointer in the tree
 * that leads to the node; if there is no such node, the null link where it would be inserted. */
static node_index *link_to_key(node_index *at, struct index_node *all, bfc_addr key) {
    while (*at && all[*at].key != key)
        at = all[*at].key < key ? &all[*at].higher : &all[*at].lower;
    return at;
}

void address_index_remove(struct address_index *index, const struct block *b) {
    node_index *at = link_to_key(&index->root, index->nodes, key_of(b)), a = *at;
    if (!a)
        return;
    struct index_node *gone = &index->nodes[a];
    join_trees(index, at, gone->lower, gone->higher);
    *gone = (struct index_node){.lower = index->vacant};
    index->vacant = a;
    index->count--;
}

void address_index_shift(struct address_index *index, bfc_addr from, bfc_addr to) {
    node_index a = *link_to_key(&index->root, index->nodes, from + 1);
    if (a)
        index->nodes[a].key = to + 1;
}

node_index address_index_find(const struct address_index *index, bfc_addr address) {
    node_index found = 0, tree = index->root;
    while (tree) {
        const struct index_node *t = &index->nodes[tree];
        bool below = (t->key & ~(bfc_addr)1) <= address;
        found = below ? tree : found;
        tree = below ? t->higher : t->lower;
    }
    return found;
}

node_index address_index_from(const struct address_index *index, bfc_addr address) {
    node_index found = 0, tree = index->root;
    while (tree) {
        const struct index_node *t = &index->nodes[tree];
        bool below = t->key < address;
        found = below ? found : tree;
        tree = below ? t->higher : t->lower;
    }
    return found;
}

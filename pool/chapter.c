/* Chapters: the treap over them. */
#include "pool/chapter.h"

bool chapters_open(struct chapters *chapters, uint64_t most) {
    if (!host_array_reserve(&chapters->memory, (most + 1) * sizeof(struct chapter)))
        return false;
    chapters->all = (struct chapter *)(void *)chapters->memory.base;
    chapters->high = 1;
    return host_array_commit(&chapters->memory, sizeof(struct chapter));
}

void chapters_close(struct chapters *chapters) {
    host_array_drop(&chapters->memory);
}

bool chapters_make_room(struct chapters *chapters) {
    return chapters->vacant || host_array_commit(&chapters->memory, ((uint64_t)chapters->high + 1) *
                                                                        sizeof(struct chapter));
}

/* A treap's random priority: a hash of the index, so it need not be stored. */
static uint32_t priority(chapter_index c) {
    uint32_t x = c * UINT32_C(0x9e3779b1);
    x ^= x >> 15;
    x *= UINT32_C(0x85ebca77);
    return x ^ x >> 13;
}

static bfc_addr start_of(const struct chapters *chapters, const struct block *blocks,
                         chapter_index c) {
    return block_start(&blocks[chapters->all[c].first]);
}

static chapter_index take_vacant(struct chapters *chapters) {
    chapter_index c = chapters->vacant;
    if (!c)
        return chapters->high++;
    chapters->vacant = chapters->all[c].lower;
    return c;
}

/* Cuts the tree at `tree` into those below `address` and those above. */
static void cut(struct chapters *chapters, const struct block *blocks, chapter_index tree,
                bfc_addr address, chapter_index *below, chapter_index *above) {
    while (tree) {
        struct chapter *t = &chapters->all[tree];
        if (start_of(chapters, blocks, tree) < address) {
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

chapter_index chapters_add(struct chapters *chapters, const struct block *blocks, block_index first,
                           uint32_t count, region_index region) {
    chapter_index c = take_vacant(chapters), *at = &chapters->root;
    bfc_addr start = block_start(&blocks[first]);
    struct chapter *added = &chapters->all[c];
    *added = (struct chapter){.first = first, .count = count, .region = region};
    while (*at && priority(*at) >= priority(c))
        at = start_of(chapters, blocks, *at) < start ? &chapters->all[*at].higher
                                                     : &chapters->all[*at].lower;
    cut(chapters, blocks, *at, start, &added->lower, &added->higher);
    *at = c;
    return c;
}

/* Joins two trees, all of `below` lower than all of `above`, at *at. */
static void join(struct chapters *chapters, chapter_index *at, chapter_index below,
                 chapter_index above) {
    while (below && above) {
        if (priority(below) >= priority(above)) {
            *at = below;
            at = &chapters->all[below].higher;
            below = *at;
        } else {
            *at = above;
            at = &chapters->all[above].lower;
            above = *at;
        }
    }
    *at = below ? below : above;
}

void chapters_remove(struct chapters *chapters, const struct block *blocks, chapter_index chapter) {
    struct chapter *gone = &chapters->all[chapter];
    bfc_addr start = start_of(chapters, blocks, chapter);
    chapter_index *at = &chapters->root;
    while (*at != chapter)
        at = start_of(chapters, blocks, *at) < start ? &chapters->all[*at].higher
                                                     : &chapters->all[*at].lower;
    join(chapters, at, gone->lower, gone->higher);
    *gone = (struct chapter){.lower = chapters->vacant};
    chapters->vacant = chapter;
}

chapter_index chapters_find(const struct chapters *chapters, const struct block *blocks,
                            bfc_addr address) {
    chapter_index found = 0, tree = chapters->root;
    while (tree) {
        bool below = start_of(chapters, blocks, tree) <= address;
        found = below ? tree : found;
        tree = below ? chapters->all[tree].higher : chapters->all[tree].lower;
    }
    return found;
}

static bool visit_tree(const struct chapters *chapters, chapter_index tree,
                       bool (*visit)(void *context, const struct chapter *chapter), void *context) {
    if (!tree)
        return true;
    const struct chapter *c = &chapters->all[tree];
    return visit_tree(chapters, c->lower, visit, context) && visit(context, c) &&
           visit_tree(chapters, c->higher, visit, context);
}

bool chapters_visit(const struct chapters *chapters,
                    bool (*visit)(void *context, const struct chapter *chapter), void *context) {
    return visit_tree(chapters, chapters->root, visit, context);
}

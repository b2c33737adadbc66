#include "tests/bench/scale/models.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BINS = 21, TF_GRAIN = 256, PYTORCH_GRAIN = 512 };
#define TF_SPARE_MOST (UINT64_C(128) << 20) /* a block with as much to spare is split */

struct chunk {
    uint64_t start, size;
    struct chunk *before, *after;        /* its neighbours by address; NULL: the region's ends */
    struct chunk *left, *right, *parent; /* in a set of free blocks, a treap */
    uint32_t priority;
    bool is_free;
};

struct slot {
    uint64_t start; /* 0: empty */
    struct chunk *chunk;
};

struct model {
    pthread_mutex_t lock;
    enum rule rule;
    uint64_t grain, base, random;
    struct chunk *sets[BINS], *spare;
    struct chunk **handles; /* tf: by address */
    struct slot *slots;     /* pytorch: by hash of the address */
    uint64_t mask, live;
};

static void *get_memory(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("scale: mmap");
        exit(1);
    }
    return memory;
}

/* ---- sets of free blocks ---- */

static bool is_before(const struct chunk *a, const struct chunk *b) {
    return a->size < b->size || (a->size == b->size && a->start < b->start);
}

static void set_child(struct chunk **root, struct chunk *parent, const struct chunk *old,
                      struct chunk *new) {
    if (!parent)
        *root = new;
    else if (parent->left == old)
        parent->left = new;
    else
        parent->right = new;
    if (new)
        new->parent = parent;
}

/* The child takes its parent's place. */
static void rotate_up(struct chunk **root, struct chunk *child) {
    struct chunk *parent = child->parent, *inner;
    set_child(root, parent->parent, parent, child);
    if (parent->left == child) {
        inner = parent->left = child->right;
        child->right = parent;
    } else {
        inner = parent->right = child->left;
        child->left = parent;
    }
    if (inner)
        inner->parent = parent;
    parent->parent = child;
}

static void insert_chunk(struct chunk **root, struct chunk *chunk) {
    struct chunk *parent = NULL, **at = root;
    while (*at) {
        parent = *at;
        at = is_before(chunk, parent) ? &parent->left : &parent->right;
    }
    *at = chunk;
    chunk->left = chunk->right = NULL;
    chunk->parent = parent;
    while (chunk->parent && chunk->parent->priority < chunk->priority)
        rotate_up(root, chunk);
}

static void remove_chunk(struct chunk **root, struct chunk *chunk) {
    while (chunk->left && chunk->right)
        rotate_up(root,
                  chunk->left->priority > chunk->right->priority ? chunk->left : chunk->right);
    set_child(root, chunk->parent, chunk, chunk->left ? chunk->left : chunk->right);
}

static struct chunk *find_first(struct chunk *root, uint64_t least) {
    struct chunk *found = NULL;
    while (root) {
        bool fits = root->size >= least;
        found = fits ? root : found;
        root = fits ? root->left : root->right;
    }
    return found;
}

static struct chunk *find_next(struct chunk *chunk) {
    if (chunk->right) {
        chunk = chunk->right;
        while (chunk->left)
            chunk = chunk->left;
        return chunk;
    }
    while (chunk->parent && chunk->parent->right == chunk)
        chunk = chunk->parent;
    return chunk->parent;
}

static unsigned bin_of(const struct model *model, uint64_t size) {
    if (model->rule == RULE_PYTORCH)
        return 0;
    unsigned bin = 63 - (unsigned)__builtin_clzll(size / TF_GRAIN);
    return bin < BINS ? bin : BINS - 1;
}

static struct chunk *find_free(struct model *model, uint64_t size) {
    if (model->rule == RULE_PYTORCH)
        return find_first(model->sets[0], size);
    for (unsigned bin = bin_of(model, size); bin < BINS; bin++)
        for (struct chunk *chunk = find_first(model->sets[bin], 0); chunk; chunk = find_next(chunk))
            if (chunk->size >= size)
                return chunk;
    return NULL;
}

/* ---- finding live blocks ---- */

static uint64_t slot_of(const struct model *model, uint64_t start) {
    return (start * UINT64_C(0x9e3779b97f4a7c15) >> 20) & model->mask;
}

static void grow_slots(struct model *model);

static void note_live(struct model *model, struct chunk *chunk) {
    if (model->rule == RULE_TF) {
        model->handles[(chunk->start - model->base) / TF_GRAIN] = chunk;
        return;
    }
    if (++model->live > model->mask / 2)
        grow_slots(model);
    uint64_t i = slot_of(model, chunk->start);
    while (model->slots[i].start)
        i = (i + 1) & model->mask;
    model->slots[i] = (struct slot){chunk->start, chunk};
}

static void grow_slots(struct model *model) {
    struct slot *old = model->slots;
    uint64_t count = old ? model->mask + 1 : 0;
    model->mask = count ? 2 * count - 1 : 1023;
    model->slots = calloc(model->mask + 1, sizeof *old);
    if (!model->slots)
        exit(1);
    uint64_t live = model->live;
    for (uint64_t i = 0; i < count; i++)
        if (old[i].start)
            note_live(model, old[i].chunk);
    model->live = live;
    free(old);
}

static struct chunk *take_slot(struct model *model, uint64_t start) {
    uint64_t hole = slot_of(model, start);
    while (model->slots[hole].start != start)
        hole = (hole + 1) & model->mask;
    struct chunk *chunk = model->slots[hole].chunk;
    for (uint64_t i = (hole + 1) & model->mask; model->slots[i].start; i = (i + 1) & model->mask) {
        uint64_t home = slot_of(model, model->slots[i].start);
        if (((i - home) & model->mask) >= ((i - hole) & model->mask)) {
            model->slots[hole] = model->slots[i];
            hole = i;
        }
    }
    model->slots[hole].start = 0;
    model->live--;
    return chunk;
}

static struct chunk *forget_live(struct model *model, uint64_t start) {
    return model->rule == RULE_TF ? model->handles[(start - model->base) / TF_GRAIN]
                                  : take_slot(model, start);
}

/* ---- blocks ---- */

static struct chunk *new_chunk(struct model *model, uint64_t start, uint64_t size) {
    struct chunk *chunk = model->spare;
    if (chunk)
        model->spare = chunk->after;
    else if (!(chunk = malloc(sizeof *chunk)))
        exit(1);
    model->random = model->random * UINT64_C(6364136223846793005) + 1;
    *chunk =
        (struct chunk){.start = start, .size = size, .priority = (uint32_t)(model->random >> 32)};
    return chunk;
}

static void put_free(struct model *model, struct chunk *chunk) {
    chunk->is_free = true;
    insert_chunk(&model->sets[bin_of(model, chunk->size)], chunk);
}

static void take_free(struct model *model, struct chunk *chunk) {
    chunk->is_free = false;
    remove_chunk(&model->sets[bin_of(model, chunk->size)], chunk);
}

static bool is_to_split(const struct model *model, const struct chunk *chunk, uint64_t size) {
    uint64_t spare = chunk->size - size;
    return model->rule == RULE_TF ? chunk->size >= 2 * size || spare >= TF_SPARE_MOST
                                  : spare >= model->grain;
}

static void split_chunk(struct model *model, struct chunk *chunk, uint64_t size) {
    struct chunk *rest = new_chunk(model, chunk->start + size, chunk->size - size);
    rest->before = chunk;
    rest->after = chunk->after;
    if (rest->after)
        rest->after->before = rest;
    chunk->after = rest;
    chunk->size = size;
    put_free(model, rest);
}

/* `next` goes into the block before it. */
static void merge_chunks(struct model *model, struct chunk *chunk, struct chunk *next) {
    chunk->size += next->size;
    chunk->after = next->after;
    if (next->after)
        next->after->before = chunk;
    next->after = model->spare;
    model->spare = next;
}

struct model *model_new(enum rule rule, uint64_t bytes, unsigned regions) {
    struct model *model = calloc(1, sizeof *model);
    if (!model)
        exit(1);
    pthread_mutex_init(&model->lock, NULL);
    model->rule = rule;
    model->grain = rule == RULE_TF ? TF_GRAIN : PYTORCH_GRAIN;
    model->base = UINT64_C(1) << 40;
    if (rule == RULE_TF)
        model->handles = get_memory(bytes / TF_GRAIN * sizeof *model->handles);
    uint64_t each = bytes / regions / PYTORCH_GRAIN * PYTORCH_GRAIN;
    for (unsigned i = 0; i < regions; i++)
        put_free(model, new_chunk(model, model->base + i * each, each));
    return model;
}

uint64_t model_allocate(struct model *model, uint64_t bytes) {
    uint64_t size = (bytes + model->grain - 1) / model->grain * model->grain, start = 0;
    pthread_mutex_lock(&model->lock);
    struct chunk *chunk = find_free(model, size);
    if (chunk) {
        take_free(model, chunk);
        if (is_to_split(model, chunk, size))
            split_chunk(model, chunk, size);
        note_live(model, chunk);
        start = chunk->start;
    }
    pthread_mutex_unlock(&model->lock);
    return start;
}

void model_free(struct model *model, uint64_t address) {
    pthread_mutex_lock(&model->lock);
    struct chunk *chunk = forget_live(model, address);
    struct chunk *before = chunk->before, *after = chunk->after;
    if (after && after->is_free) {
        take_free(model, after);
        merge_chunks(model, chunk, after);
    }
    if (before && before->is_free) {
        take_free(model, before);
        merge_chunks(model, before, chunk);
        chunk = before;
    }
    put_free(model, chunk);
    pthread_mutex_unlock(&model->lock);
}

/* Plain models of two published policies. */
#include "tests/unit/pool/plain_models.h"

#include <string.h>

#include "pool/pool.h"

#define MIB (UINT64_C(1) << 20)

void plain_open(struct plain *p, uint64_t capacity, uint64_t gap, uint64_t limit) {
    memset(p, 0, sizeof *p);
    p->capacity = capacity;
    p->gap = gap;
    p->next = UINT64_C(0x7f0000000000);
    p->limit = limit;
    p->max_split = p->threshold = UINT64_MAX;
    p->cur = 2 * MIB;
}

static uint64_t up(uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
}

/* ---- the array ---- */

static void insert(struct plain *p, unsigned at, struct plain_chunk chunk) {
    memmove(&p->chunks[at + 1], &p->chunks[at], (p->count - at) * sizeof chunk);
    p->chunks[at] = chunk;
    p->count++;
}

static void drop(struct plain *p, unsigned at) {
    p->count--;
    memmove(&p->chunks[at], &p->chunks[at + 1], (p->count - at) * sizeof p->chunks[0]);
}

/* Addresses only rise, so a new region comes last. */
static bool take_region(struct plain *p, uint64_t bytes, bool small) {
    if (bytes > p->capacity - p->taken)
        return false;
    insert(p, p->count,
           (struct plain_chunk){p->next, bytes, p->segments++, false, small, p->lookups});
    p->taken += bytes;
    p->next += bytes + p->gap;
    return true;
}

static bool is_whole(const struct plain *p, unsigned i) {
    const struct plain_chunk *c = p->chunks;
    return !c[i].used && (i == 0 || c[i - 1].segment != c[i].segment) &&
           (i + 1 == p->count || c[i + 1].segment != c[i].segment);
}

static uint64_t release(struct plain *p, unsigned i) {
    uint64_t size = p->chunks[i].size;
    p->taken -= size;
    drop(p, i);
    return size;
}

/* Returns how many bytes stay unused at the start of a chunk that is used for a block of `size`
 * bytes: unlike the published policies, ours align some blocks to 64 KiB. */
static uint64_t lead(const struct plain *p, unsigned i, uint64_t size) {
    const struct plain_chunk *c = &p->chunks[i];
    bool first = i == 0 || c[-1].segment != c->segment;
    return first || !bfc_starts_aligned(size / BFC_GRANULE)
               ? 0
               : up(c->start, BFC_ALIGNMENT) - c->start;
}

/* The smallest free chunk of the pool that is large enough, the lowest among equals; -1: none. */
static int smallest(const struct plain *p, uint64_t size, bool small) {
    int best = -1;
    for (unsigned i = 0; i < p->count; i++) {
        const struct plain_chunk *c = &p->chunks[i];
        if (!c->used && c->small == small && c->size >= size + lead(p, i, size) &&
            (best < 0 || c->size < p->chunks[best].size))
            best = (int)i;
    }
    return best;
}

static void cut_after(struct plain *p, unsigned i, uint64_t size) {
    struct plain_chunk rest = p->chunks[i];
    rest.start += size;
    rest.size -= size;
    rest.inserted_at = p->lookups;
    p->chunks[i].size = size;
    insert(p, i + 1, rest);
}

/* The chunk from where the block may start on. */
static unsigned without_lead(struct plain *p, unsigned i, uint64_t size) {
    uint64_t before = lead(p, i, size);
    if (before)
        cut_after(p, i++, before);
    return i;
}

static uint64_t use(struct plain *p, unsigned i, uint64_t size, bool cut) {
    if (cut)
        cut_after(p, i, size);
    p->chunks[i].used = true;
    p->in_use += p->chunks[i].size;
    return p->chunks[i].start;
}

void plain_free(struct plain *p, uint64_t start) {
    unsigned i = 0;
    while (p->chunks[i].start != start)
        i++;
    p->chunks[i].used = false;
    p->in_use -= p->chunks[i].size;
    if (i + 1 < p->count && !p->chunks[i + 1].used &&
        p->chunks[i + 1].segment == p->chunks[i].segment) {
        p->chunks[i].size += p->chunks[i + 1].size;
        drop(p, i + 1);
    }
    if (i > 0 && !p->chunks[i - 1].used && p->chunks[i - 1].segment == p->chunks[i].segment) {
        p->chunks[i - 1].size += p->chunks[i].size;
        drop(p, i--);
    }
    p->chunks[i].inserted_at = p->lookups;
}

/* ---- tf ---- */

static uint64_t tf_find(struct plain *p, uint64_t size) {
    int i = smallest(p, size, false);
    if (i < 0)
        return PLAIN_NONE;
    unsigned from = without_lead(p, (unsigned)i, size);
    uint64_t have = p->chunks[from].size;
    return use(p, from, size, have > size && (have >= 2 * size || have - size >= 128 * MIB));
}

static bool tf_extend(struct plain *p, uint64_t size) {
    uint64_t available = (p->limit - p->taken) / 512 * 512;
    bool increased = false;
    if (size > available)
        return false;
    while (size > p->cur) {
        p->cur *= 2;
        increased = true;
    }
    uint64_t bytes = p->cur < available ? p->cur : available;
    while (!take_region(p, bytes, false)) {
        uint64_t less = up((bytes / 10) * 9 + (bytes % 10 * 9 + 9) / 10, 512);
        if (less >= bytes)
            less = bytes - 512;
        bytes = less;
        if (bytes < size)
            return false;
    }
    if (!increased)
        p->cur *= 2;
    return true;
}

static bool tf_collect(struct plain *p, uint64_t size) {
    uint64_t total = 0;
    for (unsigned i = 0; i < p->count; i++)
        total += is_whole(p, i) ? p->chunks[i].size : 0;
    if (total == 0 || size > p->limit - p->taken + total)
        return false;
    for (unsigned i = p->count; i-- > 0;)
        if (is_whole(p, i))
            release(p, i);
    return true;
}

uint64_t plain_tf_allocate(struct plain *p, uint64_t bytes) {
    uint64_t size = up(bytes, 512), found = tf_find(p, size);
    p->lookups++;
    if (found == PLAIN_NONE && tf_extend(p, size))
        found = tf_find(p, size);
    if (found == PLAIN_NONE && tf_collect(p, size) && tf_extend(p, size))
        found = tf_find(p, size);
    return found;
}

/* ---- pytorch ---- */

static uint64_t torch_segment(uint64_t size) {
    if (size <= MIB)
        return 2 * MIB;
    return size < 10 * MIB ? 20 * MIB : up(size, 2 * MIB);
}

static uint64_t torch_use(struct plain *p, unsigned i, uint64_t size) {
    i = without_lead(p, i, size);
    uint64_t rest = p->chunks[i].size - size;
    bool cut = p->chunks[i].small ? rest >= 512 : size < p->max_split && rest > MIB;
    return use(p, i, size, cut);
}

static uint64_t torch_get_free(struct plain *p, uint64_t size) {
    int i = smallest(p, size, size <= MIB);
    if (i < 0)
        return PLAIN_NONE;
    uint64_t have = p->chunks[i].size;
    if (p->max_split != UINT64_MAX && ((size < p->max_split && have >= p->max_split) ||
                                       (size >= p->max_split && have >= size + 20 * MIB)))
        return PLAIN_NONE;
    return torch_use(p, (unsigned)i, size);
}

static uint64_t torch_device(struct plain *p, uint64_t size) {
    uint64_t segment = torch_segment(size);
    if (p->taken + segment > p->limit || !take_region(p, segment, size <= MIB))
        return PLAIN_NONE;
    return torch_use(p, p->count - 1, size);
}

static void torch_collect(struct plain *p) {
    if (p->threshold == UINT64_MAX || p->taken <= p->threshold)
        return;
    uint64_t target = p->taken - p->threshold, went = 0;
    for (bool any = true; any && went < target;) {
        double total = 0, count = 0;
        for (unsigned i = 0; i < p->count; i++)
            if (is_whole(p, i)) {
                total += (double)(p->lookups - p->chunks[i].inserted_at);
                count++;
            }
        any = false;
        for (unsigned i = p->count; i-- > 0;)
            if (is_whole(p, i) &&
                (double)(p->lookups - p->chunks[i].inserted_at) >= total / count) {
                went += release(p, i);
                any = true;
            }
    }
}

static bool torch_release_available(struct plain *p, uint64_t size) {
    if (p->max_split == UINT64_MAX)
        return false;
    uint64_t key = size > p->max_split ? size : p->max_split, went = 0;
    int best = -1;
    for (unsigned i = 0; i < p->count; i++)
        if (is_whole(p, i) && p->chunks[i].size >= key &&
            (best < 0 || p->chunks[i].size < p->chunks[best].size))
            best = (int)i;
    if (best >= 0) {
        release(p, (unsigned)best);
        return true;
    }
    while (went < key) {
        best = -1;
        for (unsigned i = 0; i < p->count; i++)
            if (is_whole(p, i) && p->chunks[i].size >= p->max_split &&
                (best < 0 || p->chunks[i].size >= p->chunks[best].size))
                best = (int)i;
        if (best < 0)
            return false;
        went += release(p, (unsigned)best);
    }
    return true;
}

uint64_t plain_pytorch_allocate(struct plain *p, uint64_t bytes) {
    uint64_t size = up(bytes, 512), found;
    p->lookups++;
    found = torch_get_free(p, size);
    if (found != PLAIN_NONE)
        return found;
    torch_collect(p);
    found = torch_device(p, size);
    if (found == PLAIN_NONE && torch_release_available(p, size))
        found = torch_device(p, size);
    if (found != PLAIN_NONE)
        return found;
    for (unsigned i = p->count; i-- > 0;)
        if (is_whole(p, i))
            release(p, i);
    return torch_device(p, size);
}

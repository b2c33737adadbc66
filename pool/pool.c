/*
 * The pool, first form: plain lists, linear searches, one mutex. Right before fast.
 */
#include "pool/pool.h"

#include <pthread.h>
#include <stdlib.h>

#define BOUNDED_WAIT_NS (UINT64_C(10) * 1000 * 1000)

enum state { LIVE, CLEAN, DIRTY, LIMBO };

struct block {
    struct bfc_block_info info;
    enum state state;
    struct block *previous, *next;
    struct region *region;
};

struct region {
    bfc_addr start;
    uint64_t size;
    bool shared, held;
    struct block *first;
    struct region *next;
};

struct bfc_pool {
    pthread_mutex_t lock;
    pthread_mutex_t growth_turn; /* one thread at a time asks the source for a region */
    struct bfc_pool_config config;
    struct bfc_source source;
    struct bfc_pool_stats own_stats, *stats;
    struct region *regions;
    bfc_mark completed;
    uint64_t step, reserving;
    bool preallocated;
};

static void stats_begin(struct bfc_pool *pool) {
    __atomic_store_n(&pool->stats->sequence, pool->stats->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void stats_end(struct bfc_pool *pool) {
    __atomic_store_n(&pool->stats->sequence, pool->stats->sequence + 1, __ATOMIC_RELEASE);
}

static void lock(struct bfc_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    stats_begin(pool);
}

static void unlock(struct bfc_pool *pool) {
    stats_end(pool);
    pthread_mutex_unlock(&pool->lock);
}

void bfc_pool_config_default(struct bfc_pool_config *config) {
    *config = (struct bfc_pool_config){
        .growth = BFC_GROWTH_DOUBLE,
        .growth_size = UINT64_C(2) << 20,
        .growth_max = UINT64_C(1) << 30,
        .limit = UINT64_MAX,
        .dirty_budget = UINT64_C(256) << 20,
    };
}

enum bfc_status bfc_pool_create(struct bfc_pool **pool, const struct bfc_pool_config *config,
                                const struct bfc_source *source) {
    struct bfc_pool *made = calloc(1, sizeof *made);
    if (!made)
        return BFC_NO_HOST_MEMORY;
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->growth_turn, NULL);
    made->config = *config;
    made->source = *source;
    made->stats = config->stats ? config->stats : &made->own_stats;
    made->step = config->growth_size ? config->growth_size : BFC_GRANULE;
    *pool = made;
    return BFC_OK;
}

static void free_blocks(struct region *region) {
    for (struct block *b = region->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(region);
}

void bfc_pool_destroy(struct bfc_pool *pool, bool release) {
    if (!pool)
        return;
    for (struct region *r = pool->regions, *next; r; r = next) {
        next = r->next;
        if (release)
            pool->source.release(pool->source.context, r->start, r->size);
        free_blocks(r);
    }
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->growth_turn);
    free(pool);
}

static uint64_t *free_bytes(struct bfc_pool *pool, enum state state) {
    return state == CLEAN   ? &pool->stats->clean
           : state == DIRTY ? &pool->stats->dirty
                            : &pool->stats->limbo;
}

static void set_state(struct bfc_pool *pool, struct block *b, enum state state, bfc_mark mark) {
    if (b->state != LIVE)
        *free_bytes(pool, b->state) -= b->info.size;
    b->state = state;
    b->info.mark = mark;
    b->info.live = state == LIVE;
    if (state != LIVE)
        *free_bytes(pool, state) += b->info.size;
}

static bool mergeable(const struct block *a, const struct block *b) {
    return a->state == b->state && a->state != LIVE && a->info.mark == b->info.mark;
}

/* a takes in its next neighbour. */
static void absorb(struct bfc_pool *pool, struct block *a) {
    struct block *gone = a->next;
    a->info.size += gone->info.size;
    a->next = gone->next;
    if (a->next)
        a->next->previous = a;
    free(gone);
    pool->stats->merges++;
}

static struct block *coalesce(struct bfc_pool *pool, struct block *b) {
    if (b->next && mergeable(b, b->next))
        absorb(pool, b);
    if (b->previous && mergeable(b->previous, b)) {
        b = b->previous;
        absorb(pool, b);
    }
    return b;
}

static void clean_up_to(struct bfc_pool *pool, bfc_mark mark) {
    if (mark == BFC_LIMBO_MARK)
        mark--; /* limbo blocks have no mark yet, so none can be complete */
    if (mark <= pool->completed)
        return;
    pool->completed = mark;
    for (struct region *r = pool->regions; r; r = r->next)
        for (struct block *b = r->first; b; b = b->next)
            if (b->state == DIRTY && b->info.mark <= mark) {
                set_state(pool, b, CLEAN, BFC_NO_MARK);
                b = coalesce(pool, b);
            }
}

/* Best fit, lowest address among equals; clean before dirty. */
static struct block *best_fit(struct bfc_pool *pool, uint64_t size, bool dirty) {
    struct block *best = NULL;
    for (struct region *r = pool->regions; r; r = r->next)
        for (struct block *b = r->first; b; b = b->next) {
            bool usable = b->state == CLEAN || (b->state == DIRTY && dirty && !r->shared);
            if (!usable || b->info.size < size)
                continue;
            if (!best || b->info.size < best->info.size ||
                (b->info.size == best->info.size &&
                 (b->state < best->state ||
                  (b->state == best->state && b->info.start < best->info.start))))
                best = b;
        }
    return best;
}

static bool split(struct bfc_pool *pool, struct block *b, uint64_t size) {
    struct block *rest = calloc(1, sizeof *rest);
    if (!rest)
        return false;
    *rest = *b;
    rest->info.start += size;
    rest->info.size -= size;
    b->info.size = size;
    rest->previous = b;
    b->next = rest;
    if (rest->next)
        rest->next->previous = rest;
    pool->stats->splits++;
    return true;
}

static void raise_peak(uint64_t *peak, uint64_t now) {
    if (now > *peak)
        *peak = now;
}

static bool take(struct bfc_pool *pool, uint64_t size, uint64_t bytes, unsigned flags,
                 struct bfc_block_info *out) {
    struct block *b = best_fit(pool, size, flags & BFC_ALLOCATE_DIRTY);
    if (!b || (b->info.size > size && !split(pool, b, size)))
        return false;
    struct bfc_pool_stats *stats = pool->stats;
    stats->dirty_reuses += b->state == DIRTY;
    set_state(pool, b, LIVE, b->info.mark);
    b->info.requested = bytes;
    static uint64_t ids;
    b->info.id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
    stats->in_use += size;
    stats->requested += bytes;
    stats->blocks++;
    stats->allocations++;
    raise_peak(&stats->peak_in_use, stats->in_use);
    raise_peak(&stats->peak_requested, stats->requested);
    *out = b->info;
    return true;
}

static bool add_region(struct bfc_pool *pool, bfc_addr start, uint64_t size) {
    struct region *r = calloc(1, sizeof *r), **at = &pool->regions;
    struct block *b = calloc(1, sizeof *b);
    if (!r || !b) {
        free(r);
        free(b);
        return false;
    }
    *r = (struct region){.start = start, .size = size, .first = b};
    *b = (struct block){
        .info = {.start = start, .size = size, .region_start = start, .region_size = size},
        .region = r};
    set_state(pool, b, CLEAN, BFC_NO_MARK);
    while (*at && (*at)->start < start)
        at = &(*at)->next;
    r->next = *at;
    *at = r;
    pool->stats->regions++;
    pool->stats->reserved += size;
    raise_peak(&pool->stats->peak_reserved, pool->stats->reserved);
    return true;
}

static uint64_t round_up(uint64_t bytes) {
    return (bytes + BFC_GRANULE - 1) / BFC_GRANULE * BFC_GRANULE;
}

static uint64_t round_down(uint64_t bytes) {
    return bytes / BFC_GRANULE * BFC_GRANULE;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* How much to ask for next; leaves the step as it will be afterwards. */
static uint64_t growth_bytes(struct bfc_pool *pool, uint64_t size, uint64_t *step) {
    const struct bfc_pool_config *config = &pool->config;
    if (config->growth == BFC_GROWTH_EXACT)
        return size;
    if (config->growth == BFC_GROWTH_FIXED)
        return larger(size, round_down(config->growth_size));
    if (config->growth == BFC_GROWTH_PREALLOCATE && !pool->preallocated)
        return larger(size, round_down(config->preallocate));
    while (*step < size && *step < config->growth_max)
        *step *= 2;
    uint64_t bytes =
        larger(size, round_up(*step < config->growth_max ? *step : config->growth_max));
    if (*step < config->growth_max)
        *step *= 2;
    return bytes;
}

/* Asks the source, backing off by 0.9 down to `size`. Called without the lock. */
static enum bfc_reserve_result reserve(struct bfc_pool *pool, uint64_t size, uint64_t *bytes,
                                       bfc_addr *start, uint64_t *refusals) {
    for (;;) {
        enum bfc_reserve_result result = pool->source.reserve(pool->source.context, *bytes, start);
        if (result != BFC_REFUSED)
            return result;
        ++*refusals;
        if (*bytes <= size)
            return BFC_REFUSED;
        uint64_t less = round_up(*bytes - *bytes / 10);
        *bytes = larger(size, less < *bytes ? less : *bytes - BFC_GRANULE);
    }
}

/* Called with the lock and the growth turn; lets go of the lock while it asks. */
static enum bfc_status grow(struct bfc_pool *pool, uint64_t size) {
    uint64_t limit = round_down(pool->config.limit), step = pool->step;
    uint64_t room = limit > pool->stats->reserved ? limit - pool->stats->reserved : 0;
    if (size > room)
        return BFC_OUT_OF_MEMORY;
    uint64_t bytes = growth_bytes(pool, size, &step), refusals = 0;
    bytes = bytes < room ? bytes : room;
    bfc_addr start = 0;
    unlock(pool);
    enum bfc_reserve_result result = reserve(pool, size, &bytes, &start, &refusals);
    lock(pool);
    pool->stats->refusals += refusals;
    pool->stats->reserve_calls += refusals + (result != BFC_REFUSED);
    if (result != BFC_RESERVED)
        return result == BFC_REFUSED ? BFC_OUT_OF_MEMORY : BFC_SOURCE_FAILED;
    pool->step = step;
    pool->preallocated = true;
    if (add_region(pool, start, bytes))
        return BFC_OK;
    unlock(pool);
    pool->source.release(pool->source.context, start, bytes);
    lock(pool);
    return BFC_NO_HOST_MEMORY;
}

/* Takes from a new region, unless another thread made room meanwhile. */
static enum bfc_status grow_and_take(struct bfc_pool *pool, uint64_t size, uint64_t bytes,
                                     unsigned flags, struct bfc_block_info *out) {
    unlock(pool);
    pthread_mutex_lock(&pool->growth_turn);
    lock(pool);
    enum bfc_status status = BFC_OK;
    bool taken = take(pool, size, bytes, flags, out);
    while (!taken && status == BFC_OK) {
        status = grow(pool, size);
        taken = take(pool, size, bytes, flags, out);
    }
    pthread_mutex_unlock(&pool->growth_turn);
    return taken ? BFC_OK : status;
}

static bool removable(const struct region *r) {
    return !r->held && r->first->state == CLEAN && !r->first->next;
}

/* Under the lock: unlinks the largest wholly free region of at most `most` bytes. */
static struct region *detach_free_region(struct bfc_pool *pool) {
    struct region **best = NULL;
    for (struct region **at = &pool->regions; *at; at = &(*at)->next)
        if (removable(*at) && (!best || (*at)->size > (*best)->size))
            best = at;
    if (!best)
        return NULL;
    struct region *r = *best;
    *best = r->next;
    pool->stats->clean -= r->size;
    pool->stats->reserved -= r->size;
    pool->stats->regions--;
    pool->stats->release_calls++;
    return r;
}

static uint64_t release_regions(struct bfc_pool *pool, uint64_t bytes) {
    uint64_t released = 0;
    for (struct region *r; released < bytes && (r = detach_free_region(pool));) {
        unlock(pool);
        pool->source.release(pool->source.context, r->start, r->size);
        lock(pool);
        released += r->size;
        free_blocks(r);
    }
    return released;
}

static bfc_mark oldest_mark(const struct bfc_pool *pool) {
    bfc_mark oldest = BFC_LIMBO_MARK;
    for (struct region *r = pool->regions; r; r = r->next)
        for (struct block *b = r->first; b; b = b->next)
            if (b->state == DIRTY && b->info.mark < oldest)
                oldest = b->info.mark;
    return oldest;
}

/* Would it fit if all dirty blocks were clean? */
static bool dirty_suffices(const struct bfc_pool *pool, uint64_t size) {
    for (struct region *r = pool->regions; r; r = r->next) {
        uint64_t run = 0;
        for (struct block *b = r->first; b; b = b->next) {
            run = b->state == CLEAN || b->state == DIRTY ? run + b->info.size : 0;
            if (run >= size)
                return true;
        }
    }
    return false;
}

static void poll(struct bfc_pool *pool) {
    if (!pool->stats->dirty)
        return;
    unlock(pool);
    bfc_mark mark =
        pool->source.poll ? pool->source.poll(pool->source.context) : BFC_LIMBO_MARK - 1;
    lock(pool);
    clean_up_to(pool, mark);
}

static uint64_t now(struct bfc_pool *pool) {
    return pool->source.now ? pool->source.now(pool->source.context) : 0;
}

/* Waits mark by mark, oldest first, until the block can be had. */
static bool wait_and_take(struct bfc_pool *pool, uint64_t size, uint64_t bytes, unsigned flags,
                          uint64_t timeout_ns, struct bfc_block_info *out) {
    uint64_t spent = 0;
    while (pool->source.wait && spent < timeout_ns && dirty_suffices(pool, size)) {
        bfc_mark oldest = oldest_mark(pool);
        if (oldest == BFC_LIMBO_MARK)
            return false;
        unlock(pool);
        uint64_t began = now(pool);
        bfc_mark mark =
            pool->source.wait(pool->source.context, oldest,
                              timeout_ns == UINT64_MAX ? UINT64_MAX : timeout_ns - spent);
        uint64_t took = now(pool) - began;
        lock(pool);
        pool->stats->waits++;
        pool->stats->wait_ns += took;
        clean_up_to(pool, mark);
        if (take(pool, size, bytes, flags, out))
            return true;
        if (mark < oldest)
            return false;
        spent += took;
    }
    return false;
}

/* The last resorts, each followed by another look. */
static enum bfc_status last_resorts(struct bfc_pool *pool, uint64_t size, uint64_t bytes,
                                    unsigned flags, struct bfc_block_info *out) {
    if (wait_and_take(pool, size, bytes, flags, UINT64_MAX, out))
        return BFC_OK;
    enum bfc_status status = BFC_OUT_OF_MEMORY;
    while (release_regions(pool, 1)) {
        status = grow_and_take(pool, size, bytes, flags, out);
        if (status != BFC_OUT_OF_MEMORY)
            return status;
    }
    if (!pool->source.ask_neighbours)
        return status;
    unlock(pool);
    uint64_t came = pool->source.ask_neighbours(pool->source.context, size);
    lock(pool);
    if (take(pool, size, bytes, flags, out))
        return BFC_OK;
    return came ? grow_and_take(pool, size, bytes, flags, out) : status;
}

static enum bfc_status miss(struct bfc_pool *pool, uint64_t size, uint64_t bytes, unsigned flags,
                            struct bfc_block_info *out) {
    struct bfc_pool_stats *stats = pool->stats;
    poll(pool);
    if (take(pool, size, bytes, flags, out))
        return stats->hits++, BFC_OK;
    if (stats->dirty > pool->config.dirty_budget &&
        wait_and_take(pool, size, bytes, flags, BOUNDED_WAIT_NS, out))
        return stats->hits++, BFC_OK;
    uint64_t calls = stats->reserve_calls;
    enum bfc_status status = grow_and_take(pool, size, bytes, flags, out);
    if (status == BFC_OUT_OF_MEMORY) {
        status = last_resorts(pool, size, bytes, flags, out);
        stats->retries += status == BFC_OK;
    }
    stats->misses += status == BFC_OK && stats->reserve_calls != calls;
    stats->hits += status == BFC_OK && stats->reserve_calls == calls;
    stats->out_of_memory += status != BFC_OK;
    return status;
}

enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block) {
    if (!bytes)
        return BFC_INVALID_SIZE;
    lock(pool);
    enum bfc_status status = BFC_OUT_OF_MEMORY;
    if (bytes > UINT64_MAX - BFC_GRANULE + 1)
        pool->stats->out_of_memory++;
    else if (take(pool, round_up(bytes), bytes, flags & BFC_ALLOCATE_HIT_ONLY ? 0 : flags, block))
        status = BFC_OK, pool->stats->hits++;
    else if (!(flags & BFC_ALLOCATE_HIT_ONLY))
        status = miss(pool, round_up(bytes), bytes, flags, block);
    unlock(pool);
    return status;
}

static struct block *find(struct bfc_pool *pool, bfc_addr address) {
    for (struct region *r = pool->regions; r; r = r->next)
        if (address - r->start < r->size)
            for (struct block *b = r->first; b; b = b->next)
                if (address - b->info.start < b->info.size)
                    return b;
    return NULL;
}

enum bfc_status bfc_pool_free(struct bfc_pool *pool, bfc_addr start, bfc_mark mark) {
    lock(pool);
    struct block *b = find(pool, start);
    enum bfc_status status = !b ? BFC_UNKNOWN_POINTER : BFC_INVALID_POINTER;
    if (b && b->state == LIVE && b->info.start == start) {
        status = BFC_OK;
        pool->stats->in_use -= b->info.size;
        pool->stats->requested -= b->info.requested;
        pool->stats->blocks--;
        pool->stats->frees++;
        b->info.requested = b->info.id = 0;
        bool clean = mark <= pool->completed;
        set_state(pool, b,
                  clean                    ? CLEAN
                  : mark == BFC_LIMBO_MARK ? LIMBO
                                           : DIRTY,
                  clean ? BFC_NO_MARK : mark);
        coalesce(pool, b);
    }
    pool->stats->invalid_frees += status == BFC_INVALID_POINTER;
    unlock(pool);
    return status;
}

void bfc_pool_mark_limbo(struct bfc_pool *pool, bfc_mark mark) {
    lock(pool);
    bool clean = mark <= pool->completed;
    for (struct region *r = pool->regions; r; r = r->next)
        for (struct block *b = r->first; b; b = b->next)
            if (b->state == LIMBO) {
                set_state(pool, b, clean ? CLEAN : DIRTY, clean ? BFC_NO_MARK : mark);
                b = coalesce(pool, b);
            }
    unlock(pool);
}

void bfc_pool_complete(struct bfc_pool *pool, bfc_mark mark) {
    lock(pool);
    clean_up_to(pool, mark);
    unlock(pool);
}

static void look_around(const struct block *b, struct bfc_block_info *info) {
    *info = b->info;
    for (const struct block *p = b->previous; p && p->state != LIVE; p = p->previous)
        info->free_before += p->info.size;
    for (const struct block *n = b->next; n && n->state != LIVE; n = n->next)
        info->free_after += n->info.size;
}

bool bfc_pool_find(struct bfc_pool *pool, bfc_addr address, struct bfc_block_info *block) {
    lock(pool);
    struct block *b = find(pool, address);
    if (b)
        look_around(b, block);
    unlock(pool);
    return b;
}

void bfc_pool_share_region(struct bfc_pool *pool, bfc_addr address, bool held) {
    lock(pool);
    struct block *b = find(pool, address);
    if (b) {
        b->region->shared = true;
        b->region->held = held;
    }
    unlock(pool);
}

uint64_t bfc_pool_trim(struct bfc_pool *pool, uint64_t bytes) {
    lock(pool);
    uint64_t released = release_regions(pool, bytes);
    unlock(pool);
    return released;
}

void bfc_pool_read_stats(struct bfc_pool *pool, struct bfc_pool_stats *stats) {
    lock(pool);
    uint64_t largest = 0;
    for (struct region *r = pool->regions; r; r = r->next)
        for (struct block *b = r->first; b; b = b->next)
            if (b->state != LIVE)
                largest = larger(largest, b->info.size);
    pool->stats->largest_free = largest;
    *stats = *pool->stats;
    stats->sequence--;
    unlock(pool);
}

static const char *check_region(const struct region *r, uint64_t bytes[4]) {
    bfc_addr expected = r->start;
    for (const struct block *b = r->first; b; b = b->next) {
        if (b->info.start != expected || !b->info.size)
            return "blocks do not tile their region";
        if (b->next && b->next->previous != b)
            return "a block's neighbours do not point back at it";
        if (b->next && b->state == CLEAN && b->next->state == CLEAN)
            return "two neighbouring blocks are both free and clean";
        expected += b->info.size;
        bytes[b->state] += b->info.size;
    }
    return expected != r->start + r->size ? "blocks do not fill their region" : NULL;
}

const char *bfc_pool_check(struct bfc_pool *pool) {
    lock(pool);
    const char *fault = NULL;
    uint64_t bytes[4] = {0};
    const struct bfc_pool_stats *stats = pool->stats;
    for (struct region *r = pool->regions; r && !fault; r = r->next)
        fault = check_region(r, bytes);
    if (!fault && (bytes[LIVE] != stats->in_use || bytes[CLEAN] != stats->clean ||
                   bytes[DIRTY] != stats->dirty || bytes[LIMBO] != stats->limbo))
        fault = "the counters differ from the blocks";
    if (!fault && stats->in_use + stats->clean + stats->dirty + stats->limbo != stats->reserved)
        fault = "in use + clean + dirty + limbo differs from reserved";
    unlock(pool);
    return fault;
}

void bfc_pool_visit(struct bfc_pool *pool,
                    void (*visit)(void *context, const struct bfc_block_info *block),
                    void *context) {
    lock(pool);
    for (struct region *r = pool->regions; r; r = r->next)
        for (struct block *b = r->first; b; b = b->next) {
            struct bfc_block_info info;
            look_around(b, &info);
            visit(context, &info);
        }
    unlock(pool);
}

void bfc_pool_before_fork(struct bfc_pool *pool) {
    lock(pool);
}

void bfc_pool_after_fork(struct bfc_pool *pool) {
    unlock(pool);
}

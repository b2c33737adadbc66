/*
 * Threads on one pool: 8 of them allocate, free what they or others allocated, in one step or in
 * two, look up, complete fences and trim, over a device that refuses now and then. Each block
 * carries its owner's word in a shadow of the device's memory, so a block that two hold at once
 * shows. A plain program, for ThreadSanitizer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/pool/fake_pages.h"
#include "tests/unit/pool/fake_upstream.h"

#define THREADS 8
#define SLOTS 256
#ifdef __SANITIZE_THREAD__ /* under which a step takes much longer */
#define STEPS 5000
#else
#define STEPS 20000
#endif
#define CAPACITY (UINT64_C(64) << 20)
#define SHADOW (1 << 25) /* granules of made-up addresses, by their low bits */

static struct fake_upstream fake;
static struct bfc_pool *pool;
static uint64_t shadow[SHADOW];
static struct bfc_block_info slots[SLOTS]; /* start 0: empty */
static uint64_t slot_busy[SLOTS];
static uint64_t last_fence, faults;

static uint64_t next(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static uint64_t *word_of(bfc_addr start) {
    return &shadow[(start / BFC_GRANULE) % SHADOW];
}

static void claim(const struct bfc_block_info *b, uint64_t from, uint64_t to) {
    for (uint64_t at = b->start; at < b->start + b->size; at += BFC_GRANULE)
        if (!__atomic_compare_exchange_n(word_of(at), &(uint64_t){from}, to, false,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
}

static void exchange(unsigned slot, uint64_t *seed) {
    struct bfc_block_info *b = &slots[slot];
    if (b->start) {
        bfc_fence fence =
            next(seed) % 3 ? BFC_NO_FENCE : __atomic_add_fetch(&last_fence, 1, __ATOMIC_RELAXED);
        claim(b, b->id, 0);
        if (next(seed) % 8 == 0) {
            if (bfc_pool_free_awaited(pool, b->start) != BFC_OK)
                __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
            bfc_pool_ready(pool, b->start, fence);
        } else if (bfc_pool_free(pool, b->start, fence) != BFC_OK)
            __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
        b->start = 0;
        return;
    }
    uint64_t bytes = 1 + next(seed) % (next(seed) % 16 ? 16384 : 4 << 20);
    unsigned flags = next(seed) % 4 ? 0 : BFC_ALLOCATE_PENDING;
    if (bfc_pool_allocate(pool, bytes, flags, b) == BFC_OK)
        claim(b, 0, b->id);
}

/* Of any block: pages that are in nobody's hands may be pinned as well. */
static void pin_for_a_while(uint64_t *seed) {
    bfc_addr start = UINT64_C(0x7f0000000000) + next(seed) % CAPACITY;
    if (bfc_pool_pin(pool, start, 1 << 16))
        bfc_pool_unpin(pool, start, 1 << 16);
}

static void look_around(uint64_t *seed) {
    struct bfc_block_info info;
    struct bfc_pool_stats stats;
    struct bfc_page_stats paged;
    switch (next(seed) % 64) {
    case 0:
        bfc_pool_trim(pool, next(seed) << 10);
        break;
    case 1:
        bfc_pool_complete(pool, __atomic_load_n(&last_fence, __ATOMIC_RELAXED));
        break;
    case 2:
        bfc_pool_trim_used(pool, next(seed) << 10);
        break;
    case 3:
        bfc_pool_read_stats(pool, &stats);
        bfc_pool_page_stats(pool, &paged);
        break;
    case 4:
        if (bfc_pool_page_stats(pool, &paged))
            bfc_pool_trim_idle(pool, 0);
        break;
    case 5:
        pin_for_a_while(seed);
        break;
    default:
        bfc_pool_find(pool, UINT64_C(0x7f0000000000) + next(seed), &info);
    }
}

static void *work(void *context) {
    uint64_t seed = (uint64_t)(uintptr_t)context;
    for (int i = 0; i < STEPS; i++) {
        unsigned slot = (unsigned)(next(&seed) % SLOTS);
        if (__atomic_exchange_n(&slot_busy[slot], 1, __ATOMIC_ACQUIRE))
            continue;
        exchange(slot, &seed);
        __atomic_store_n(&slot_busy[slot], 0, __ATOMIC_RELEASE);
        if (i % 16 == 0)
            look_around(&seed);
    }
    return NULL;
}

static bfc_fence poll(void *context) {
    (void)context;
    return __atomic_load_n(&last_fence, __ATOMIC_RELAXED);
}

static bfc_fence wait(void *context, bfc_fence fence, uint64_t timeout_ns) {
    (void)context;
    (void)timeout_ns;
    return fence;
}

/* What is left to the end: the next pool begins afresh. */
static void let_go(void) {
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].start) {
            claim(&slots[i], slots[i].id, 0);
            slots[i].start = 0;
        }
}

static struct fake_pages pages;

/* Has any of this an owner? */
static bool in_use(void *user, bfc_addr start, uint64_t bytes) {
    (void)user;
    for (bfc_addr at = start; at < start + bytes; at += BFC_GRANULE)
        if (__atomic_load_n(word_of(at), __ATOMIC_RELAXED))
            return true;
    return false;
}

static struct bfc_upstream paged_upstream(void) {
    fake_pages_init(&pages, UINT64_C(1) << 16, CAPACITY);
    pages.in_use = in_use;
    return (struct bfc_upstream){
        .context = &pages, .poll = poll, .wait = wait, .pages = &pages.calls};
}

static bool is_clean(bool paged) {
    if (paged && pages.fault)
        puts(pages.fault);
    return paged ? !pages.fault && fake_pages_is_clean(&pages) : !fake.taken && !fake.bad_releases;
}

static int run(enum bfc_policy policy, bool paged) {
    last_fence = 0;
    fake_upstream_init(&fake, CAPACITY);
    struct bfc_upstream upstream = fake_upstream_table(&fake);
    upstream.poll = poll;
    upstream.wait = wait;
    if (paged)
        upstream = paged_upstream();
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.policy = policy;
    config.pending_budget = 1 << 20;
    if (bfc_pool_create(&pool, &config, &upstream) != BFC_OK)
        return 1;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    let_go();
    const char *fault = bfc_pool_check(pool);
    bfc_pool_destroy(pool, true);
    printf("faults %llu, checker: %s, %s left\n", (unsigned long long)faults,
           fault ? fault : "fine", is_clean(paged) ? "nothing" : "something");
    return faults || fault || !is_clean(paged);
}

int main(void) {
    return run(BFC_POLICY_BFC, false) || run(BFC_POLICY_TF, false) ||
           run(BFC_POLICY_PYTORCH, false) || run(BFC_POLICY_BFC, true) ||
           run(BFC_POLICY_TF, true) || run(BFC_POLICY_PYTORCH, true);
}

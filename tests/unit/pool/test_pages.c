/*
 * Pages behind the pool: random programs against a device that knows what is behind each address
 * and a model of what is in use, and at times wants no pages, with the checker after every step;
 * each kind of call refused once at each of its first times; and the promise of pages.h, also where
 * calls fail.
 *
 * BFC_TEST_PROGRAMS says how many programs to run; the first argument is the seed of the first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/pool/page_machine.h"

#define STEPS 300

static void free_awaited(struct machine *m, unsigned i) {
    struct bfc_block_info block = m->live[i];
    m->live[i] = m->live[--m->count];
    m->awaited[m->awaited_count++] = (struct busy){block.start, block.size, 0};
    if (bfc_pool_free_awaited(m->pool, block.start) != BFC_OK)
        machine_fail(m, "a live block could not be freed");
}

static void free_some(struct machine *m) {
    if (!m->count)
        return;
    unsigned i = (unsigned)machine_draw(m, m->count);
    switch (machine_draw(m, 8)) {
    case 0:
        machine_free(m, i, BFC_DEFERRED_FENCE);
        break;
    case 1:
        if (m->awaited_count < BLOCKS)
            free_awaited(m, i);
        break;
    case 2:
    case 3:
        machine_free(m, i, ++m->drawn);
        break;
    default:
        machine_free(m, i, BFC_NO_FENCE);
    }
}

static void pin_some(struct machine *m) {
    unsigned i = m->count ? (unsigned)machine_draw(m, m->count) : 0;
    if (m->pins && (m->pins == PINS || machine_draw(m, 2))) {
        struct busy gone = m->pinned[--m->pins];
        bfc_pool_unpin(m->pool, gone.start, gone.bytes);
    } else if (m->count && fake_pages_is_in_region(&m->fake, m->live[i].start)) {
        if (bfc_pool_pin(m->pool, m->live[i].start, m->live[i].size))
            machine_fail(m, "a block without pages could be pinned");
    } else if (m->count) {
        m->pinned[m->pins++] = (struct busy){m->live[i].start, m->live[i].size, 0};
        if (!bfc_pool_pin(m->pool, m->live[i].start, m->live[i].size))
            machine_fail(m, "a live block could not be pinned");
    }
    if (bfc_pool_pin(m->pool, 4096, 4096))
        machine_fail(m, "foreign addresses could be pinned");
}

static void complete(struct machine *m, bfc_fence fence) {
    m->completed = fence > m->completed ? fence : m->completed;
    bfc_pool_complete(m->pool, fence);
}

/* One in 24 has pages that are remade for the others, where granules are small. */
static uint64_t size_of(struct machine *m) {
    if (machine_draw(m, 24) == 0)
        return 35 * MIB + machine_draw(m, 16 * MIB);
    return 1 + machine_draw(m, UINT64_C(1) << (9 + machine_draw(m, 15)));
}

static void step(struct machine *m) {
    static const unsigned flags[] = {0, 0, BFC_ALLOCATE_PENDING, BFC_ALLOCATE_HIT_ONLY};
    switch (machine_draw(m, 16)) {
    case 0:
        complete(m, m->drawn - machine_draw(m, m->drawn - m->completed + 1));
        break;
    case 1:
        bfc_pool_trim(m->pool, machine_draw(m, 2) ? UINT64_MAX : machine_draw(m, 8) * MIB);
        break;
    case 2:
        m->clock += machine_draw(m, 1000);
        bfc_pool_trim_idle(m->pool, machine_draw(m, 1000));
        break;
    case 3:
        pin_some(m);
        break;
    case 4:
        if (machine_draw(m, 4) == 0)
            m->fake.refuse_at[machine_draw(m, PAGE_CALLS)] += (unsigned)machine_draw(m, 20);
        else
            m->fake.unwanted = machine_draw(m, 4) == 0;
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        free_some(m);
        break;
    case 9:
        machine_plan(m, size_of(m));
        break;
    default:
        machine_allocate(m, size_of(m), flags[machine_draw(m, 4)]);
    }
}

/* In every third program small blocks have pages of their own from the beginning. */
static void open_pool(struct machine *m, const struct bfc_pool_config *config,
                      const struct bfc_upstream *upstream, uint64_t seed) {
    if (bfc_pool_create(&m->pool, config, upstream) != BFC_OK)
        abort();
    if (seed % 3 == 0)
        policy_part_small(m->pool, m->fake.calls.granule / 2);
}

static void open_machine(struct machine *m, uint64_t seed) {
    static const uint64_t granules[] = {UINT64_C(1) << 16, UINT64_C(1) << 18, 2 * MIB};
    memset(m, 0, sizeof *m);
    m->seed = seed * 77 + 5;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    fake_pages_init(&m->fake, granules[machine_draw(m, 3)], CAPACITY);
    m->fake.in_use = machine_in_use;
    m->fake.user = m;
    if (machine_draw(m, 4) == 0)
        m->fake.calls.addresses = 4 * MIB;
    config.policy = machine_draw(m, 4) ? BFC_POLICY_BFC : (enum bfc_policy)machine_draw(m, 3);
    config.growth = (enum bfc_growth)machine_draw(m, 4);
    config.preallocate = 8 * MIB;
    config.growth_size = machine_draw(m, 2) ? 2 * MIB : 65536;
    config.page_most = machine_draw(m, 2) ? 512 * MIB : MIB;
    config.page_rule = (enum bfc_page_rule)machine_draw(m, 3);
    config.page_slack = machine_draw(m, 2) ? 0.03 : 0;
    config.limit = machine_draw(m, 3) ? UINT64_MAX : 40 * MIB;
    config.pending_budget = machine_draw(m, 2) ? 0 : 8 * MIB;
    config.track_idle = machine_draw(m, 2);
    struct bfc_upstream upstream = {.context = &m->fake,
                                    .poll = machine_poll,
                                    .wait = machine_wait,
                                    .now = machine_now,
                                    .pages = &m->fake.calls};
    m->fake.fail = machine_draw(m, 2);
    m->fake.refuse_on = machine_draw(m, 8) == 0;
    if (machine_draw(m, 2)) {
        upstream.reserve = fake_pages_reserve_region;
        upstream.release = fake_pages_release_region;
    }
    open_pool(m, &config, &upstream, seed);
}

static const char *run(uint64_t seed, int refused, unsigned at) {
    static struct machine m;
    open_machine(&m, seed);
    if (refused >= 0)
        m.fake.refuse_at[refused] = at;
    for (int i = 0; i < STEPS && !m.fault; i++) {
        step(&m);
        machine_check(&m);
    }
    machine_close(&m);
    return m.fault;
}

/* ---- the promise ---- */

/* Bytes of pages and regions of which a byte is live. */
static uint64_t bytes_held(const struct machine *m) {
    uint64_t bytes = 0;
    for (bfc_page p = 1; p <= m->fake.named; p++) {
        const struct fake_page *page = &m->fake.pages[p];
        bool held = false;
        for (unsigned i = 0; page->start && i < m->count; i++)
            held |= machine_meet(page->start, page->bytes, m->live[i].start, m->live[i].size);
        bytes += held ? page->bytes : 0;
    }
    return bytes;
}

static uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

/* What no plan can move: what has a live byte, is mapped for good, or all if nothing is unmapped.
 */
static uint64_t bytes_stuck(struct machine *m) {
    struct bfc_page_stats pages;
    if (m->fake.refuse_on && m->fake.refuse_at[PAGE_UNMAP])
        return m->fake.taken;
    bfc_pool_page_stats(m->pool, &pages);
    return bytes_held(m) + pages.lost;
}

/* With all free blocks ready, or as soon as they are waited for: what fails would not have fitted,
 * whatever had moved. Of the kind `refused` the call `at` and, if the seed is odd, all later ones
 * are refused, for another reason than a lack of memory; then there are regions too. */
static const char *run_promise(uint64_t seed, int refused, unsigned at) {
    static struct machine m;
    struct bfc_pool_config config;
    memset(&m, 0, sizeof m);
    m.seed = seed;
    fake_pages_init(&m.fake, machine_draw(&m, 2) ? UINT64_C(1) << 16 : 2 * MIB, CAPACITY);
    m.fake.in_use = machine_in_use;
    m.fake.user = &m;
    bfc_pool_config_default(&config);
    config.limit = machine_draw(&m, 2) ? UINT64_MAX : 48 * MIB;
    config.page_most = machine_draw(&m, 2) ? 512 * MIB : 2 * MIB;
    config.page_rule = (enum bfc_page_rule)machine_draw(&m, 3);
    uint64_t allowed = config.limit < CAPACITY ? config.limit : CAPACITY;
    bool fenced = machine_draw(&m, 2), plans = machine_draw(&m, 2);
    struct bfc_upstream upstream = {
        .context = &m.fake, .poll = machine_poll, .wait = machine_wait, .pages = &m.fake.calls};
    if (refused >= 0) {
        upstream.reserve = fake_pages_reserve_region;
        upstream.release = fake_pages_release_region;
        m.fake.fail = true;
        m.fake.refuse_on = seed % 2;
        m.fake.refuse_at[refused] = at;
    }
    open_pool(&m, &config, &upstream, seed);
    for (int i = 0; i < STEPS && !m.fault; i++) {
        if (m.count && machine_draw(&m, 100) < 42)
            machine_free(&m, (unsigned)machine_draw(&m, m.count),
                         fenced ? ++m.drawn : BFC_NO_FENCE);
        if (plans)
            machine_plan(&m, size_of(&m));
        uint64_t bytes = size_of(&m), held = bytes_stuck(&m);
        enum bfc_status status = machine_allocate(&m, bytes, 0);
        if (status != BFC_OK && held + round_up(bytes, m.fake.calls.granule) <= allowed)
            machine_fail(&m, "an allocation failed that fits beside the pages that are in use");
        machine_check(&m);
    }
    machine_close(&m);
    return m.fault;
}

/* ---- the tests ---- */

static int report(int number, const char *name, uint64_t seed, const char *fault) {
    if (!fault) {
        printf("ok %d - %s\n", number, name);
        return 0;
    }
    printf("not ok %d - %s: seed %llu: %s\n", number, name, (unsigned long long)seed, fault);
    return 1;
}

static int test_programs(uint64_t first, uint64_t programs) {
    const char *fault = NULL;
    uint64_t seed = first;
    for (; seed < first + programs && !(fault = run(seed, -1, 0)); seed++)
        ;
    return report(1, "random programs agree with the model", seed, fault);
}

static int test_refusals(uint64_t first, uint64_t programs) {
    const char *fault = NULL;
    uint64_t seed = first;
    for (; seed < first + programs / 20 + 1 && !fault; seed++)
        for (int call = 0; call < PAGE_CALLS && !fault; call++)
            for (unsigned at = 1; at <= 12 && !fault; at++)
                fault = run(seed, call, at);
    return report(2, "each call refused once, at each of its first 12 times", seed - 1, fault);
}

static int test_promise(uint64_t first, uint64_t programs) {
    const char *fault = NULL;
    uint64_t seed = first;
    for (; seed < first + programs && !(fault = run_promise(seed, -1, 0)); seed++)
        ;
    return report(3, "what fails would not have fitted, whatever had moved", seed, fault);
}

static int test_fallback(uint64_t first, uint64_t programs) {
    static const unsigned moments[] = {1, 2, 5, 13, 34};
    const char *fault = NULL;
    uint64_t seed = first;
    for (; seed < first + programs / 20 + 1 && !fault; seed++)
        for (int call = 0; call < PAGE_CALLS && !fault; call++)
            for (unsigned i = 0; i < sizeof moments / sizeof *moments && !fault; i++)
                fault = run_promise(seed, call, moments[i]);
    return report(4, "nor where calls fail: then regions serve", seed - 1, fault);
}

int main(int argc, char **argv) {
    const char *setting = getenv("BFC_TEST_PROGRAMS");
    uint64_t programs = setting ? strtoull(setting, NULL, 10) : 200;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    printf("1..4\n");
    int failed = test_programs(first, programs);
    failed |= test_refusals(first, programs);
    failed |= test_promise(first, programs);
    return failed | test_fallback(first, programs);
}

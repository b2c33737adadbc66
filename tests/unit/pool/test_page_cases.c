/*
 * Pages behind the pool, single cases: where a request is served, what goes back, what other
 * threads free meanwhile, pages that fail, and small blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/pool/page_case.h"

/* The last free block is extended by what it lacks, not replaced. */
static const char *grows_in_place(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr first = allocate_units(&m, 4), second = allocate_units(&m, 4);
    free_at(&m, second);
    bool held = allocate_units(&m, 7) == first + 4 * UNIT && m.fake.taken == 11 * UNIT;
    return close_case(&m, held, "a free block at the end was not extended in place");
}

/* Two free pages apart from each other serve one request at the limit. */
static const char *stitches(void) {
    static struct machine m;
    open_exact(&m, 8 * UNIT);
    bfc_addr at[4];
    for (int i = 0; i < 4; i++)
        at[i] = allocate_units(&m, 2);
    free_at(&m, at[0]);
    free_at(&m, at[2]);
    allocate_units(&m, 4);
    return close_case(&m, m.fake.taken == 8 * UNIT, "pages were made beyond the limit");
}

/* What cuMemGetInfo may tell as free: pages that are free apart from each other serve one request.
 */
static const char *counts_as_one_room(void) {
    static struct machine m;
    open_exact(&m, 8 * UNIT);
    bfc_addr at[4];
    for (int i = 0; i < 4; i++)
        at[i] = allocate_units(&m, 2);
    free_at(&m, at[0]);
    free_at(&m, at[2]);
    struct bfc_pool_room room;
    bfc_pool_read_room(m.pool, &room);
    bool held = room.largest == 4 * UNIT;
    allocate_units(&m, 4);
    return close_case(&m, held, "free pages apart from each other do not count as one room");
}

/* A gap between two free blocks, which alone have pages to spare: they must not be kept for it. */
static const char *leaves_the_gap(void) {
    static struct machine m;
    open_exact(&m, 23 * UNIT);
    bfc_addr before = allocate_units(&m, 10), gap = allocate_units(&m, 2);
    bfc_addr after = allocate_units(&m, 10);
    free_at(&m, gap);
    allocate_units(&m, 3);
    free_at(&m, before);
    free_at(&m, after);
    allocate_units(&m, 13);
    return close_case(&m, true, "");
}

/* One page goes back from between two that are in use. */
static const char *gives_back_one(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    allocate_units(&m, 2);
    bfc_addr middle = allocate_units(&m, 3);
    allocate_units(&m, 2);
    free_at(&m, middle);
    bool held = bfc_pool_trim(m.pool, 1) == UNIT && m.fake.taken == 6 * UNIT;
    machine_check(&m);
    bfc_addr gone = middle + 2 * UNIT;
    struct bfc_block_info found;
    held = held && bfc_pool_find(m.pool, gone, &found) && found.bare && !found.live;
    held = held && bfc_pool_free(m.pool, gone, BFC_NO_FENCE) == BFC_INVALID_POINTER;
    return close_case(&m, held, "a free page between two was not given back, or not as bare");
}

/* A page that only some looks find ready stays. */
static const char *gives_back_idle(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr at = allocate_units(&m, 3);
    bool held = bfc_pool_trim_idle(m.pool, 0) == 0;
    free_at(&m, at);
    held = held && bfc_pool_trim_idle(m.pool, UINT64_MAX) == 0;
    held = held && bfc_pool_trim_idle(m.pool, 0) == 3 * UNIT && m.fake.taken == 0;
    return close_case(&m, held, "idle pages did not go back, or those in use did");
}

/* What the device was told of giving back. */
static struct {
    unsigned times;
    uint64_t bytes;
} told;

static void note_told(void *context, uint64_t bytes) {
    (void)context;
    told.times++;
    told.bytes += bytes;
}

/* One trim is told of once, however many pages go. */
static const char *tells_of_release(void) {
    static struct machine m;
    told.times = 0;
    told.bytes = 0;
    open_exact(&m, UINT64_MAX);
    m.fake.calls.released = note_told;
    bfc_pool_destroy(m.pool, true);
    struct bfc_upstream upstream = {.context = &m.fake, .pages = &m.fake.calls};
    if (bfc_pool_create(&m.pool, NULL, &upstream) != BFC_OK)
        abort();
    bfc_addr first = allocate_units(&m, 20);
    free_at(&m, first);
    uint64_t went = bfc_pool_trim(m.pool, UINT64_MAX);
    return close_case(&m, went >= 20 * UNIT && told.times == 1 && told.bytes == went,
                      "a trim of many pages was not told of once");
}

struct seen {
    bfc_addr at[4];
    unsigned count;
};

static bool see(void *context, const struct bfc_page_info *page) {
    struct seen *seen = context;
    seen->at[seen->count++ % 4] = page->start;
    return true;
}

static bool see_two(void *context, const struct bfc_page_info *page) {
    struct seen *seen = context;
    see(context, page);
    return seen->count < 2;
}

static const char *shows_pages(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr first = allocate_units(&m, 2), second = allocate_units(&m, 2);
    struct seen seen = {.count = 0};
    bool held = bfc_pool_visit_pages(m.pool, second, 1, see, &seen) == 1 && seen.at[0] == second;
    held = held && bfc_pool_visit_pages(m.pool, 0, UINT64_MAX, see, &seen) == 4 &&
           seen.at[1] == first && seen.at[3] == second;
    seen.count = 0;
    held = held && bfc_pool_visit_pages(m.pool, 0, UINT64_MAX, see_two, &seen) == 2 &&
           seen.at[1] == first + UNIT;
    held = held && !bfc_pool_pin(m.pool, second, 3 * UNIT) && !bfc_pool_pin(m.pool, second, 0);
    return close_case(&m, held, "pages were not shown, or more was pinned than there is");
}

/* A page is at most a 64th of the block that it is made for, and at least a granule. */
static const char *sizes_pages(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    struct seen seen = {.count = 0};
    bfc_addr large = allocate_units(&m, 200), small = allocate_units(&m, 20);
    bool held = bfc_pool_visit_pages(m.pool, large, 200 * UNIT, see, &seen) == 67;
    held = held && bfc_pool_visit_pages(m.pool, small, 20 * UNIT, see, &seen) == 20;
    return close_case(&m, held, "pages are not of the size that their blocks allow");
}

/* A step that the device cannot give is not tried again for each block. */
static const char *steps_less_when_refused(void) {
    static struct machine m;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.growth_size = 8 * CAPACITY;
    config.growth = BFC_GROWTH_FIXED;
    open_growing(&m, config, 16 * CAPACITY);
    uint64_t whole = CAPACITY / UNIT;
    for (uint64_t i = 0; i < whole; i++)
        allocate_units(&m, 1);
    return close_case(&m, m.fake.made[PAGE_CREATE] <= 4 * whole,
                      "pages were made and given back again and again");
}

/* Nor is it where each step would be one page, larger than what is lacking. */
static const char *steps_less_by_one_page(void) {
    static struct machine m;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.page_rule = BFC_PAGE_STEP;
    config.growth_size = 8 * CAPACITY;
    config.growth = BFC_GROWTH_FIXED;
    open_growing(&m, config, 16 * CAPACITY);
    for (int i = 0; i < 100; i++)
        allocate_units(&m, 1);
    return close_case(&m, m.fake.made[PAGE_CREATE] <= 50, "refused steps were tried again");
}

/* ---- other threads ---- */

/* At the first call of this kind, the block that another thread frees. */
static struct {
    enum page_call call;
    bfc_addr block;
} freed_during;

static void free_meanwhile(void *user, enum page_call call) {
    struct machine *m = user;
    bfc_addr block = freed_during.block;
    if (call != freed_during.call || !block)
        return;
    freed_during.block = 0;
    for (unsigned i = 0; i < m->count; i++)
        if (m->live[i].start == block)
            machine_free(m, i, BFC_NO_FENCE);
}

/* What fits as soon as another thread frees is taken, and no more pages are made or moved for it:
 * neither in vain nor, as once happened, for ever. */
static const char *takes_what_others_free(enum page_call call) {
    static struct machine m;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    open_exactly(&m, config, 8 * UNIT);
    m.fake.meanwhile = free_meanwhile;
    freed_during.block = 0;
    bfc_addr block = allocate_units(&m, 6);
    freed_during.call = call;
    freed_during.block = block;
    bfc_addr at = allocate_units(&m, 5);
    bool in_time = call == PAGE_RESERVE;
    bool held = freed_during.block == 0 && (!in_time || (at == block && m.fake.taken == 6 * UNIT));
    return close_case(&m, held, "what another thread freed meanwhile was not taken");
}

static const char *takes_what_is_freed_at_reserve(void) {
    return takes_what_others_free(PAGE_RESERVE);
}

static const char *takes_what_is_freed_at_create(void) {
    return takes_what_others_free(PAGE_CREATE);
}

static const char *takes_what_is_freed_at_allow(void) {
    return takes_what_others_free(PAGE_ALLOW);
}

/* All that is free joins to one block: what may not be split without pages is with them. */
static const char *splits_the_unsplit(void) {
    static struct machine m;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.policy = BFC_POLICY_PYTORCH;
    config.max_split = 4 * MIB;
    open_exactly(&m, config, 4 * CAPACITY);
    free_at(&m, allocate_units(&m, 8 * MIB / UNIT));
    for (int i = 0; i < 4; i++)
        allocate_units(&m, 2 * MIB / UNIT);
    return close_case(&m, m.fake.taken == 8 * MIB, "a free block was handed out whole");
}

/* Pages fail for good: a region serves, and goes back when it is free. */
static const char *falls_back(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr paged = allocate_units(&m, 4);
    m.fake.fail = m.fake.refuse_on = true;
    m.fake.refuse_at[PAGE_CREATE] = 1;
    bfc_addr plain = allocate_units(&m, 6);
    bool held = fake_pages_in_regions(&m.fake) == 6 * UNIT;
    free_at(&m, plain);
    held = held && allocate_units(&m, 5) == plain;
    free_at(&m, plain);
    held = held && bfc_pool_trim(m.pool, UINT64_MAX) == 6 * UNIT && m.fake.taken == 4 * UNIT;
    free_at(&m, paged);
    return close_case(&m, held, "pages that failed were not replaced by a region");
}

/* ---- what could not be unmapped ---- */

static uint64_t bytes_lost(struct machine *m) {
    struct bfc_page_stats pages;
    bfc_pool_page_stats(m->pool, &pages);
    return pages.lost;
}

/* Each step is one page. The next one gets no access and, so many times, cannot be unmapped. */
static void open_refusing(struct machine *m, unsigned unmaps) {
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.page_rule = BFC_PAGE_STEP;
    open_exactly(m, config, 4 * CAPACITY);
    allocate_units(m, 1);
    m->fake.fail = true;
    m->fake.refuse_at[PAGE_ALLOW] = m->fake.made[PAGE_ALLOW] + 1;
    m->fake.refuse_at[PAGE_UNMAP] = m->fake.made[PAGE_UNMAP] + 1;
    m->fake.refuse_on = unmaps > 1;
}

/* It is most of what the device has, and what was asked for needs it. */
static const char *unmaps_what_it_lost_at_once(void) {
    static struct machine m;
    open_refusing(&m, 1);
    uint64_t most = CAPACITY / UNIT - 1;
    allocate_units(&m, most);
    return close_case(&m, bytes_lost(&m) == 0 && m.fake.taken == CAPACITY,
                      "what could not be unmapped was lost to the allocation that it was made for");
}

static void lose_page(struct machine *m) {
    open_refusing(m, 2);
    machine_allocate(m, 4 * UNIT, 0);
    m->fake.refuse_on = false;
    if (bytes_lost(m) == 0)
        machine_fail(m, "nothing was lost");
}

static const char *unmaps_what_it_lost_before_growing(void) {
    static struct machine m;
    lose_page(&m);
    allocate_units(&m, 2);
    return close_case(&m, bytes_lost(&m) == 0, "growing did not unmap what was lost");
}

static const char *unmaps_what_it_lost_in_a_trim(void) {
    static struct machine m;
    lose_page(&m);
    uint64_t taken = m.fake.taken, lost = bytes_lost(&m);
    bool held = bfc_pool_trim(m.pool, 1) == lost && m.fake.taken == taken - lost;
    return close_case(&m, held && bytes_lost(&m) == 0, "a trim did not give back what was lost");
}

static const char *unmaps_what_it_lost_when_idle(void) {
    static struct machine m;
    lose_page(&m);
    uint64_t lost = bytes_lost(&m);
    bool held = bfc_pool_trim_idle(m.pool, UINT64_MAX) == lost;
    return close_case(&m, held && bytes_lost(&m) == 0, "what was lost is not idle");
}

/* One that stays so does not keep the others. */
static const char *unmaps_others_that_it_lost(void) {
    static struct machine m;
    lose_page(&m);
    uint64_t first = bytes_lost(&m);
    m.fake.refuse_on = true;
    m.fake.refuse_at[PAGE_ALLOW] = m.fake.made[PAGE_ALLOW] + 1;
    m.fake.refuse_at[PAGE_UNMAP] = m.fake.made[PAGE_UNMAP] + 1;
    machine_allocate(&m, 3 * UNIT, 0);
    uint64_t both = bytes_lost(&m);
    m.fake.refuse_on = false;
    m.fake.refuse_at[PAGE_UNMAP] = m.fake.made[PAGE_UNMAP] + 1;
    uint64_t went = bfc_pool_trim(m.pool, UINT64_MAX);
    machine_check(&m);
    bool held = both > first && went > 0 && bytes_lost(&m) > 0 && bytes_lost(&m) < both;
    return close_case(&m, held, "a page that is lost kept another one");
}

/* ---- many bare blocks ---- */

/* Small blocks, so that the records are moved together when these are gone; and blocks every other
 * one of which becomes bare, more than are looked at. */
#define SMALL 8000
#define MANY 2060

static bfc_addr take(struct machine *m, uint64_t bytes) {
    struct bfc_block_info block;
    if (bfc_pool_allocate(m->pool, bytes, 0, &block) == BFC_OK)
        return block.start;
    machine_fail(m, "an allocation failed");
    return 0;
}

/* Frees every `step`-th. */
static void drop(struct machine *m, const bfc_addr *at, int count, int step) {
    for (int i = 0; i < count; i += step)
        if (bfc_pool_free(m->pool, at[i], BFC_NO_FENCE) != BFC_OK)
            machine_fail(m, "a free failed");
}

static bool is_sound(struct machine *m) {
    const char *fault = bfc_pool_check(m->pool);
    if (fault)
        machine_fail(m, fault);
    return !fault;
}

/* The pool grows at its end, and where a range became bare last. */
static const char *has_many_bare(void) {
    static struct machine m;
    static bfc_addr small[SMALL], at[MANY];
    open_exact(&m, UINT64_MAX);
    m.fake.capacity = 4 * (uint64_t)MANY * UNIT;
    m.fake.in_use = NULL;
    for (int i = 0; i < SMALL; i++)
        small[i] = take(&m, BFC_GRANULE);
    for (int i = 0; i < MANY; i++)
        at[i] = take(&m, i % 2 ? UNIT : 2 * UNIT);
    bfc_addr tail = take(&m, UNIT);
    drop(&m, at, MANY, 2);
    bfc_pool_trim(m.pool, UINT64_MAX);
    drop(&m, &tail, 1, 1);
    bool held = is_sound(&m) && take(&m, 2 * UNIT) == tail;
    drop(&m, small, SMALL, 1);
    bfc_pool_trim(m.pool, UINT64_MAX);
    held = held && is_sound(&m) && take(&m, 3 * UNIT) == small[0];
    drop(&m, at + 1, MANY - 1, 2);
    held = held && is_sound(&m);
    return close_case(&m, held, "many bare blocks, and a place was not where the pool grows");
}

/* ---- small blocks ---- */

/* Pages of free blocks join in one place, until more have moved than were ever requested. */
static void move_much(struct machine *m) {
    for (int round = 0; round < 8; round++) {
        bfc_addr at[4], joined;
        for (int i = 0; i < 4; i++)
            at[i] = take(m, 2 * UNIT);
        int odd = round % 2;
        drop(m, at + odd, 4 - odd, 2);
        joined = take(m, 4 * UNIT);
        drop(m, at + !odd, 4 - !odd, 2);
        drop(m, &joined, 1, 1);
    }
}

static bool share_page(bfc_addr a, bfc_addr b) {
    return a / UNIT == b / UNIT;
}

static const char *parts_small(void) {
    static struct machine m;
    open_exact(&m, 8 * UNIT);
    bfc_addr at[] = {take(&m, UNIT / 4 * 3), take(&m, UNIT / 8)};
    bool held = share_page(at[0], at[1]);
    drop(&m, at, 2, 1);
    move_much(&m);
    at[0] = take(&m, UNIT / 4 * 3);
    at[1] = take(&m, UNIT / 2);
    held =
        held && is_sound(&m) && !share_page(at[0], at[1]) && share_page(at[1], take(&m, UNIT / 8));
    return close_case(&m, held, "a small block was not where it belongs");
}

/* At the limit each size takes what the other has left of its pages. */
static const char *mixes_at_the_limit(void) {
    static struct machine m;
    open_exact(&m, 8 * UNIT);
    move_much(&m);
    bfc_addr small = take(&m, UNIT / 8), others[] = {take(&m, 7 * UNIT), take(&m, UNIT / 4 * 3)};
    bool held = share_page(others[1], small) && is_sound(&m);
    drop(&m, others, 2, 1);
    bfc_addr large = take(&m, UNIT / 4 * 3);
    take(&m, 6 * UNIT);
    held = held && share_page(take(&m, UNIT / 2), small) &&
           share_page(take(&m, UNIT / 8 * 3), small) && share_page(take(&m, UNIT / 4), large);
    return close_case(&m, held && is_sound(&m), "a piece was left where no page could be had");
}

/* Where the device has no page left it is asked once, not for each small block; until pages move.
 */
static const char *asks_once(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    m.fake.capacity = 8 * UNIT;
    move_much(&m);
    bfc_addr last = take(&m, UNIT / 4 * 3),
             at[] = {take(&m, 2 * UNIT), take(&m, 2 * UNIT), take(&m, 2 * UNIT), take(&m, UNIT)};
    bfc_addr small = take(&m, UNIT / 8);
    bool held = share_page(small, last);
    unsigned asked = m.fake.made[PAGE_CREATE];
    for (int i = 0; i < 10; i++) {
        drop(&m, &small, 1, 1);
        small = take(&m, UNIT / 8);
    }
    held = held && share_page(small, last) && m.fake.made[PAGE_CREATE] == asked;
    drop(&m, at, 4, 2);
    take(&m, 3 * UNIT);
    held = held && !share_page(take(&m, UNIT / 8), last);
    return close_case(&m, held && is_sound(&m), "a small block was where it does not belong");
}

/* ---- large pages ---- */

/* Of a block of so many units, which are 64 pages, much larger than a small block has. */
#define HUGE_UNITS 960
#define HUGE_PAGE (HUGE_UNITS / 64)

/* One has gone, and left its place to a small block's. */
static bool is_remade_at(struct machine *m, bfc_addr at) {
    return pages_from(m, at, HUGE_PAGE * UNIT) == HUGE_PAGE &&
           pages_from(m, at, HUGE_UNITS * UNIT) == 63 + HUGE_PAGE;
}

static const char *remakes_large(void) {
    static struct machine m;
    open_exact(&m, HUGE_UNITS * UNIT);
    bfc_addr huge = allocate_units(&m, HUGE_UNITS);
    bool held = pages_from(&m, huge, HUGE_UNITS * UNIT) == 64;
    free_at(&m, huge);
    held = held && machine_allocate(&m, UNIT, BFC_ALLOCATE_HIT_ONLY) == BFC_OUT_OF_MEMORY;
    held = held && m.fake.made[PAGE_CREATE] == 64 && allocate_units(&m, 1) == huge;
    held = held && is_remade_at(&m, huge) && m.fake.taken == HUGE_UNITS * UNIT;
    bfc_addr second = allocate_units(&m, HUGE_PAGE - 1);
    held = held && second == huge + UNIT && is_remade_at(&m, huge);
    free_at(&m, second);
    free_at(&m, huge);
    unsigned made = m.fake.made[PAGE_CREATE];
    for (int pass = 0; pass < 3; pass++) {
        free_at(&m, allocate_units(&m, HUGE_UNITS));
        free_at(&m, allocate_units(&m, HUGE_PAGE));
    }
    held = held && made == 64 + HUGE_PAGE && m.fake.made[PAGE_CREATE] == made;
    return close_case(&m, held, "a large page was not remade once for small blocks");
}

/* Neither what is pinned, nor for a block that is not much smaller. */
static const char *keeps_large(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr huge = allocate_units(&m, HUGE_UNITS);
    bfc_pool_pin(m.pool, huge, UNIT);
    m.pinned[m.pins++] = (struct busy){huge, HUGE_PAGE * UNIT, 0};
    free_at(&m, huge);
    bfc_addr small = allocate_units(&m, 1);
    bool held = small == huge && pages_from(&m, huge, HUGE_UNITS * UNIT) == 64;
    free_at(&m, small);
    bfc_pool_unpin(m.pool, huge, UNIT);
    m.pins = 0;
    held = held && allocate_units(&m, HUGE_UNITS / 4) == huge &&
           pages_from(&m, huge, HUGE_UNITS * UNIT) == 64;
    return close_case(&m, held, "a page was remade that was pinned, or fitted well");
}

/* Beside the page that is on its way. */
static const char *remakes_beside_a_free(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr huge = allocate_units(&m, HUGE_UNITS), beside = allocate_units(&m, 10);
    free_at(&m, huge);
    m.fake.meanwhile = free_meanwhile;
    freed_during.call = PAGE_CREATE;
    freed_during.block = beside;
    bool held = allocate_units(&m, 1) == huge && !freed_during.block && is_remade_at(&m, huge);
    held = held && allocate_units(&m, HUGE_UNITS + 9) == huge + UNIT;
    return close_case(&m, held, "a block that was freed while a page was remade did not join");
}

/* What is refused costs neither the allocation nor memory, and is not asked for again. */
static const char *remakes_in_vain(enum page_call call) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr huge = allocate_units(&m, HUGE_UNITS);
    free_at(&m, huge);
    m.fake.fail = true;
    m.fake.refuse_at[call] = m.fake.made[call] + 1;
    allocate_units(&m, 1);
    unsigned made = m.fake.made[call];
    allocate_units(&m, HUGE_PAGE);
    bool held = m.fake.made[call] == made;
    held = held && bfc_pool_trim(m.pool, UINT64_MAX) && allocate_units(&m, 1);
    return close_case(&m, held, "a large page that could not be remade was asked for again");
}

static const char *remakes_without_unmap(void) {
    return remakes_in_vain(PAGE_UNMAP);
}

static const char *remakes_without_create(void) {
    return remakes_in_vain(PAGE_CREATE);
}

static const char *remakes_without_map(void) {
    return remakes_in_vain(PAGE_MAP);
}

static const char *remakes_without_allow(void) {
    return remakes_in_vain(PAGE_ALLOW);
}

/* ---- the tests ---- */

static const struct page_case cases[] = {
    {"the last free block grows in place", grows_in_place},
    {"pages apart from each other serve one request", stitches},
    {"pages apart from each other count as one room", counts_as_one_room},
    {"what joins two blocks does not keep their pages", leaves_the_gap},
    {"a page between two goes back", gives_back_one},
    {"idle pages go back", gives_back_idle},
    {"a trim is told of once", tells_of_release},
    {"pages are shown", shows_pages},
    {"pages are small against their blocks", sizes_pages},
    {"a step that was refused is smaller next time", steps_less_when_refused},
    {"a step of one page that was refused is smaller next time", steps_less_by_one_page},
    {"what is freed while addresses are reserved is taken", takes_what_is_freed_at_reserve},
    {"what is freed while a page is made is no harm", takes_what_is_freed_at_create},
    {"what is freed while access is given is no harm", takes_what_is_freed_at_allow},
    {"what is not split without pages is split with them", splits_the_unsplit},
    {"a region takes the place of pages that fail", falls_back},
    {"what could not be unmapped serves the same allocation", unmaps_what_it_lost_at_once},
    {"what could not be unmapped goes when the pool grows", unmaps_what_it_lost_before_growing},
    {"what could not be unmapped goes in a trim", unmaps_what_it_lost_in_a_trim},
    {"what could not be unmapped is idle", unmaps_what_it_lost_when_idle},
    {"one that cannot be unmapped keeps no other", unmaps_others_that_it_lost},
    {"more bare blocks than are looked at", has_many_bare},
    {"small blocks get pages of their own once pages move", parts_small},
    {"at the limit small and large blocks share pages", mixes_at_the_limit},
    {"the device is not asked for each small block", asks_once},
    {"large pages are remade for small blocks, once", remakes_large},
    {"large pages that are pinned, or fit, stay", keeps_large},
    {"what is freed while a large page is remade is no harm", remakes_beside_a_free},
    {"a large page that cannot be unmapped stays", remakes_without_unmap},
    {"small pages that cannot be made for a large one", remakes_without_create},
    {"small pages that cannot be mapped for a large one", remakes_without_map},
    {"small pages that get no access for a large one", remakes_without_allow},
};

int main(void) {
    return run_cases(cases, (int)(sizeof cases / sizeof *cases));
}

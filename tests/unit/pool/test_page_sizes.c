/* Pages that choose their size (page_rule auto): large until free blocks are scattered. */
#include "tests/unit/pool/page_case.h"

/* Four blocks of `units` with one of a unit after each, in pages of their own. */
static void open_choosing(struct machine *m, uint64_t units, bfc_addr at[4]) {
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.gc_threshold = 1; /* pages move before any is made */
    open_exactly(m, config, 4 * CAPACITY);
    for (int i = 0; i < 4; i++) {
        at[i] = allocate_units(m, units);
        if (pages_from(m, at[i], units * UNIT) != 1)
            machine_fail(m, "a step was not one page though nothing was free");
        allocate_units(m, 1);
    }
}

static const char *chooses_by_holes(void) {
    static struct machine m;
    bfc_addr at[4];
    open_choosing(&m, 3, at);
    free_at(&m, at[3]);
    bool held = pages_from(&m, allocate_units(&m, 100), 100 * UNIT) > 50;
    return close_case(&m, held, "a page is larger than what could move of a scattered free block");
}

/* Of 200 free units 150 are wanted; their two pages would move to there as they are. */
static const char *remakes_what_would_move(void) {
    static struct machine m;
    bfc_addr at[4];
    open_choosing(&m, 100, at);
    free_at(&m, at[0]);
    free_at(&m, at[2]);
    bfc_addr joined = allocate_units(&m, 150);
    bool held = m.fake.taken == (204 + 150) * UNIT && pages_from(&m, joined, 150 * UNIT) > 10;
    return close_case(&m, held, "large pages moved where free blocks are scattered");
}

/* In every other step. */
static const char *gives_a_large_block_its_page(void) {
    static struct machine m;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.growth = BFC_GROWTH_FIXED;
    config.growth_size = 50 * UNIT;
    open_growing(&m, config, 4 * CAPACITY);
    allocate_units(&m, 50);
    allocate_units(&m, 50);
    bfc_addr large = allocate_units(&m, 400);
    bool held = pages_from(&m, large, 400 * UNIT) == 1 && m.fake.made[PAGE_CREATE] == 3 &&
                m.fake.taken == 550 * UNIT;
    allocate_units(&m, 50);
    allocate_units(&m, 400);
    held = held && m.fake.made[PAGE_CREATE] == 4 && m.fake.taken == 1000 * UNIT;
    free_at(&m, large);
    held = held && bfc_pool_trim(m.pool, UINT64_MAX) == 400 * UNIT;
    return close_case(&m, held, "a large block shares its page, or each has one of its own");
}

/* ---- the tests ---- */

static const struct page_case cases[] = {
    {"new pages are small where free blocks are scattered", chooses_by_holes},
    {"large pages that would move are remade", remakes_what_would_move},
    {"in every other step a large block has a page of its own", gives_a_large_block_its_page},
};

int main(void) {
    return run_cases(cases, (int)(sizeof cases / sizeof *cases));
}

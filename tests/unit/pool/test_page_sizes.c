/* Pages that choose their size (page_rule auto): large until free blocks cost memory. */
#include "tests/unit/pool/page_case.h"

/* units of a step of growth: two blocks of 10 units, each with one of a unit after it */
#define STEP 22
#define PAIRS 20

/* Pages that have a byte in use, with 10 units free in each of many places. */
static void open_scattered(struct machine *m) {
    struct bfc_pool_config config;
    bfc_addr at[PAIRS];
    bfc_pool_config_default(&config);
    config.growth = BFC_GROWTH_FIXED;
    config.growth_size = STEP * UNIT;
    open_growing(m, config, 4 * CAPACITY);
    for (int i = 0; i < PAIRS; i++) {
        at[i] = allocate_units(m, 10);
        allocate_units(m, 1);
    }
    for (int i = 0; i < PAIRS; i++)
        free_at(m, at[i]);
}

/* Free blocks that cost little memory cost no calls; once they do, new pages are small. */
static const char *chooses_by_holes(void) {
    static struct machine m;
    open_scattered(&m);
    bfc_addr first = allocate_units(&m, STEP + 8);
    bool held = pages_from(&m, first, (STEP + 8) * UNIT) <= 3;
    allocate_units(&m, STEP + 8);
    bfc_addr third = allocate_units(&m, STEP + 8);
    held = held && pages_from(&m, third, (STEP + 8) * UNIT) > STEP;
    return close_case(&m, held, "pages are not as small as what free blocks cost");
}

/* Not before is a large page that would move remade. */
static const char *remakes_what_would_move(void) {
    static struct machine m;
    open_scattered(&m);
    bfc_addr large = allocate_units(&m, 2 * STEP);
    allocate_units(&m, 2 * STEP);
    allocate_units(&m, STEP);
    bool held = pages_from(&m, large, 2 * STEP * UNIT) <= 3;
    free_at(&m, large);
    bfc_addr joined = allocate_units(&m, 3 * STEP);
    held = held && pages_from(&m, joined, 3 * STEP * UNIT) > STEP;
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
    {"new pages are small where free blocks have cost memory", chooses_by_holes},
    {"large pages that would move are remade", remakes_what_would_move},
    {"in every other step a large block has a page of its own", gives_a_large_block_its_page},
};

int main(void) {
    return run_cases(cases, (int)(sizeof cases / sizeof *cases));
}

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

/* A pool whose steps of growth make 50 units beyond the request. */
static void open_steps(struct machine *m) {
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.growth = BFC_GROWTH_FIXED;
    config.growth_size = 50 * UNIT;
    open_growing(m, config, 4 * CAPACITY);
    m->fake.capacity = 4 * CAPACITY;
}

/* A block of 400 units, after a small step that leaves calls to spare. It gets one page, and the
 * 50 units beyond the request get another one. */
static const char *gives_a_large_block_its_page(void) {
    static struct machine m;
    open_steps(&m);
    allocate_units(&m, 50);
    allocate_units(&m, 50);
    bfc_addr large = allocate_units(&m, 400);
    bool held = pages_from(&m, large, 400 * UNIT) == 1 && m.fake.made[PAGE_CREATE] == 3 &&
                m.fake.taken == 550 * UNIT;
    free_at(&m, large);
    held = held && bfc_pool_trim(m.pool, UINT64_MAX) == 450 * UNIT;
    return close_case(&m, held, "a large block shares its page");
}

static unsigned made_calls(const struct machine *m) {
    unsigned calls = 0;
    for (int call = 0; call < PAGE_CALLS; call++)
        calls += m->fake.made[call];
    return calls;
}

/* Each step makes pages for a block of 400 units and 50 units beyond it. With one page it would
 * take three calls; 1.5 times as many are allowed, and a few more at the beginning. */
static const char *spends_few_calls(void) {
    static struct machine m;
    bool held = true;
    open_steps(&m);
    for (unsigned steps = 1; steps <= 8; steps++) {
        allocate_units(&m, 400);
        allocate_units(&m, 50);
        held = held && m.fake.made[PAGE_ALLOW] == steps && made_calls(&m) <= (9 * steps + 6) / 2;
    }
    held = held && made_calls(&m) > 3 * 8 + 8;
    return close_case(&m, held, "more calls than 1.5 times those of one page in each step, or few");
}

/* A block of 1,600 units (100 MiB), whose step is cut into pages of about 48 MiB. It begins in what
 * is left of the page of an earlier step, so it lies in three pages. */
static const char *cuts_a_step_into_pieces(void) {
    static struct machine m;
    open_steps(&m);
    for (int i = 0; i < 8; i++)
        allocate_units(&m, 100);
    bfc_addr large = allocate_units(&m, 1600);
    bool held = pages_from(&m, large, 1600 * UNIT) == 3;
    return close_case(&m, held, "a step is one page though calls are to spare");
}

/* ---- the tests ---- */

static const struct page_case cases[] = {
    {"new pages are small where free blocks have cost memory", chooses_by_holes},
    {"large pages that would move are remade", remakes_what_would_move},
    {"a large block has a page of its own", gives_a_large_block_its_page},
    {"steps make at most half as many calls again as with one page each", spends_few_calls},
    {"a large step is cut into pieces", cuts_a_step_into_pieces},
};

int main(void) {
    return run_cases(cases, (int)(sizeof cases / sizeof *cases));
}

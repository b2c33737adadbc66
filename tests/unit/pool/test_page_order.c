/* Pages whose last work may be under way, since one stream orders it: they move after a wait. */
#include "tests/unit/pool/page_case.h"

/* What the device does when work is waited for. */
static struct {
    struct machine *machine;
    unsigned times;
    bool refuses;
    bool works;     /* work may be under way in ready blocks */
    bfc_addr frees; /* another thread frees this block during the first wait; 0: none */
} settling;

static bool note_settled(void *user) {
    (void)user;
    settling.times++;
    settling.works = settling.refuses;
    if (settling.frees) {
        settling.works = true;
        bfc_pool_free(settling.machine->pool, settling.frees, BFC_STREAM_FENCE);
        settling.frees = 0;
    }
    return !settling.refuses;
}

static unsigned unmaps_under_work;

static void note_unmap(void *user, enum page_call call) {
    (void)user;
    unmaps_under_work += call == PAGE_UNMAP && settling.works;
}

/* Frees two of four blocks in the order of a stream, and allocates as much in one. */
static bool move_in_order(struct machine *m, uint64_t limit, bfc_addr at[4]) {
    unmaps_under_work = 0;
    settling.machine = m;
    settling.times = 0;
    settling.works = true;
    open_exact(m, limit);
    m->fake.settle = note_settled;
    m->fake.meanwhile = note_unmap;
    for (int i = 0; i < 4; i++)
        at[i] = allocate_units(m, 2);
    settling.frees = settling.frees ? at[1] : 0;
    bool freed = bfc_pool_free(m->pool, at[0], BFC_STREAM_FENCE) == BFC_OK &&
                 bfc_pool_free(m->pool, at[2], BFC_STREAM_FENCE) == BFC_OK;
    struct bfc_block_info block;
    return freed && bfc_pool_allocate(m->pool, 4 * UNIT, 0, &block) == BFC_OK;
}

/* Work may be under way in ready pages: it is waited for before they move. */
static const char *settles_before_moving(void) {
    static struct machine m;
    bfc_addr at[4];
    settling.refuses = false;
    settling.frees = 0;
    bool held = move_in_order(&m, 8 * UNIT, at) && settling.times == 1 && !unmaps_under_work;
    bfc_pool_destroy(m.pool, false);
    return held ? NULL : "pages moved before the last work in them was waited for";
}

/* Of a block that is freed meanwhile the wait says nothing. */
static const char *settles_again(void) {
    static struct machine m;
    bfc_addr at[4];
    settling.refuses = false;
    settling.frees = 1;
    bool held = move_in_order(&m, 8 * UNIT, at) && settling.times == 2 && !unmaps_under_work;
    bfc_pool_destroy(m.pool, false);
    return held ? NULL : "a wait was taken to cover a block that was freed during it";
}

/* Work that does not end: new pages are made where they may be. */
static const char *grows_past_work(void) {
    static struct machine m;
    bfc_addr at[4];
    settling.refuses = true;
    settling.frees = 0;
    bool held =
        move_in_order(&m, UINT64_MAX, at) && !unmaps_under_work && m.fake.taken == 12 * UNIT;
    bfc_pool_destroy(m.pool, false);
    return held ? NULL : "pages moved though their work had not ended";
}

static const struct page_case cases[] = {
    {"pages move only after their last work", settles_before_moving},
    {"a wait does not cover what is freed during it", settles_again},
    {"pages stay whose work does not end", grows_past_work},
};

int main(void) {
    return run_cases(cases, (int)(sizeof cases / sizeof *cases));
}

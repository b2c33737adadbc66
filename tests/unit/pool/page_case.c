#include "tests/unit/pool/page_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void open_growing(struct machine *m, struct bfc_pool_config config, uint64_t addresses) {
    memset(m, 0, sizeof *m);
    fake_pages_init(&m->fake, UNIT, CAPACITY);
    m->fake.calls.addresses = addresses;
    m->fake.in_use = machine_in_use;
    m->fake.user = m;
    struct bfc_upstream upstream = {.context = &m->fake,
                                    .reserve = fake_pages_reserve_region,
                                    .release = fake_pages_release_region,
                                    .pages = &m->fake.calls};
    if (bfc_pool_create(&m->pool, &config, &upstream) != BFC_OK)
        abort();
}

/* A pool that makes what is lacking and no more. */
void open_exactly(struct machine *m, struct bfc_pool_config config, uint64_t addresses) {
    config.growth = BFC_GROWTH_EXACT;
    open_growing(m, config, addresses);
}

bfc_addr allocate_units(struct machine *m, uint64_t units) {
    if (machine_allocate(m, units * UNIT, 0) != BFC_OK) {
        machine_fail(m, "an allocation failed");
        return 0;
    }
    machine_check(m);
    return m->live[m->count - 1].start;
}

void free_at(struct machine *m, bfc_addr start) {
    for (unsigned i = 0; i < m->count; i++)
        if (m->live[i].start == start) {
            machine_free(m, i, BFC_NO_FENCE);
            machine_check(m);
            return;
        }
    machine_fail(m, "no such block");
}

const char *close_case(struct machine *m, bool held, const char *otherwise) {
    if (!held)
        machine_fail(m, otherwise);
    machine_close(m);
    return m->fault;
}

static bool count_page(void *context, const struct bfc_page_info *page) {
    (void)context;
    return page != NULL;
}

unsigned pages_from(struct machine *m, bfc_addr start, uint64_t bytes) {
    return (unsigned)bfc_pool_visit_pages(m->pool, start, bytes, count_page, NULL);
}

void open_exact(struct machine *m, uint64_t limit) {
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.page_rule = BFC_PAGE_FIT;
    config.limit = limit;
    open_exactly(m, config, 4 * CAPACITY);
}

int run_cases(const struct page_case *cases, int count) {
    int failed = 0;
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        const char *fault = cases[i].run();
        failed |= fault != NULL;
        printf("%s %d - %s%s%s\n", fault ? "not ok" : "ok", i + 1, cases[i].name, fault ? ": " : "",
               fault ? fault : "");
    }
    return failed;
}

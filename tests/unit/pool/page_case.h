/* What the single cases of pages share: a pool over a device of small pages, and calls that note
 * what goes wrong. Sizes in units, the device's granules. */
#ifndef TESTS_UNIT_POOL_PAGE_CASE_H
#define TESTS_UNIT_POOL_PAGE_CASE_H

#include "tests/unit/pool/page_machine.h"

#define UNIT BFC_ALIGNMENT

void open_growing(struct machine *m, struct bfc_pool_config config, uint64_t addresses);

/* A pool that makes what is lacking and no more. */
void open_exactly(struct machine *m, struct bfc_pool_config config, uint64_t addresses);

bfc_addr allocate_units(struct machine *m, uint64_t units);
void free_at(struct machine *m, bfc_addr start);

/* Returns the number of pages in a range. */
unsigned pages_from(struct machine *m, bfc_addr start, uint64_t bytes);

/* Returns what went wrong: `otherwise`, unless `held`, or what the machine found first; else NULL.
 */
const char *close_case(struct machine *m, bool held, const char *otherwise);

/* A machine whose pages fit each request, with this limit. */
void open_exact(struct machine *m, uint64_t limit);

struct page_case {
    const char *name;
    const char *(*run)(void); /* returns what is wrong, or NULL */
};

/* Runs the cases, and prints their results in the test anything protocol; returns main's status. */
int run_cases(const struct page_case *cases, int count);

#endif

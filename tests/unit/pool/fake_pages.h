/*
 * A made-up device whose addresses and memory are apart, for tests. It knows what each address has
 * behind it, notes every call that a real device would refuse, and asks whether addresses that
 * lose their pages are still in use.
 */
#ifndef TESTS_UNIT_POOL_FAKE_PAGES_H
#define TESTS_UNIT_POOL_FAKE_PAGES_H

#include "pool/pages.h"

enum page_call {
    PAGE_RESERVE,
    PAGE_CREATE,
    PAGE_MAP,
    PAGE_UNMAP,
    PAGE_ALLOW,
    PAGE_CALLS, /* that can be refused */
};

#define FAKE_PAGES 4096

struct fake_page {
    uint64_t bytes; /* 0: there is none of this name */
    bfc_addr start; /* 0: mapped nowhere */
    bool allowed;
    bool region; /* of plain memory */
};

struct fake_pages {
    struct bfc_page_calls calls; /* what a pool is created with */
    uint64_t capacity, taken;    /* bytes of memory */
    bfc_addr next;
    uint64_t reserved; /* bytes of addresses */
    struct fake_page pages[FAKE_PAGES];
    bfc_page named;
    unsigned made[PAGE_CALLS], refuse_at[PAGE_CALLS]; /* the n-th of its kind; 0: none */
    bool refuse_on;                                   /* and all later ones of its kind */
    bool fail;                                        /* refusing says nothing of memory */
    bool unwanted;                                    /* no page may be made, moved or remade */
    /* What other threads do while a call is under way; NULL: nothing. */
    void (*meanwhile)(void *user, enum page_call call);
    /* Is any of this still in use? */
    bool (*in_use)(void *user, bfc_addr start, uint64_t bytes);
    void *user;
    const char *fault; /* the first call that was wrong */
};

/* `granule`: of the pages. */
void fake_pages_init(struct fake_pages *fake, uint64_t granule, uint64_t capacity);

/* Plain regions of the same device: for struct bfc_upstream. */
enum bfc_reserve_result fake_pages_reserve_region(void *context, uint64_t bytes, bfc_addr *start,
                                                  struct bfc_ask *ask);
bool fake_pages_release_region(void *context, bfc_addr start, uint64_t bytes, int *error);
uint64_t fake_pages_in_regions(const struct fake_pages *fake); /* bytes, of all */
bool fake_pages_is_in_region(const struct fake_pages *fake, bfc_addr address);

/* May the device use all of these addresses? */
bool fake_pages_backs(const struct fake_pages *fake, bfc_addr start, uint64_t bytes);

/* Is there no page and no address left? */
bool fake_pages_is_clean(const struct fake_pages *fake);

#endif

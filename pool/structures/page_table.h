/*
 * The page table: which page is behind which addresses (pool/pages.h).
 *
 * An array sorted by address, so that a search is by bisection. Adding and removing move what comes
 * after, once for many pages; a pool that grows in place adds at the end. The pool's lock guards
 * it.
 */
#ifndef BFC_POOL_PAGE_TABLE_H
#define BFC_POOL_PAGE_TABLE_H

#include "pool/pages.h"
#include "pool/structures/host.h"

struct page {
    bfc_addr start; /* in a plan: where it was, until it is mapped anew */
    uint64_t bytes;
    bfc_page handle;
    uint64_t seen_ns; /* when a look of bfc_pool_trim_idle first found it ready... */
    uint32_t look;    /* ...the number of its last look that did, from 1 on */
    uint32_t pins;    /* a count */
    bool lost;        /* mapped, without access, and not to be unmapped: its addresses are bare */
};

/* A growing array of them. */
struct page_array {
    struct page *all;
    uint32_t count;
    struct host_array memory;
};

bool page_array_open(struct page_array *array, uint64_t most);
void page_array_close(struct page_array *array);

/* Makes room for so many more; false: the host has no memory for them. */
bool page_array_prepare(struct page_array *array, uint64_t more);

/* Adds one at the end, for which room was made. */
void page_array_append(struct page_array *array, const struct page *page);

/* The first page that ends above `address`; `count` if there is none. Of a sorted array. */
uint32_t page_table_find(const struct page_array *table, bfc_addr address);

/* Adds pages, which are sorted by address, in their places; room was made. */
void page_table_add(struct page_array *table, const struct page *pages, uint32_t count);

/* Removes the pages that start where these do, which are sorted by address. */
void page_table_remove(struct page_array *table, const struct page_array *gone);

/* By address. */
void page_array_sort(struct page_array *array);

static inline bfc_addr page_end(const struct page *page) {
    return page->start + page->bytes;
}

#endif

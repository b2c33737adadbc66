/*
 * The page table: which page is behind which addresses (pool/pages.h).
 *
 * An array, sorted by address and searched by bisection. Adding or removing many pages at once
 * moves each later page once; a pool that grows in place adds at the end. The pool's lock guards
 * the table.
 */
#ifndef BFC_POOL_PAGE_TABLE_H
#define BFC_POOL_PAGE_TABLE_H

#include "pool/pages.h"
#include "pool/structures/host.h"

struct page {
    bfc_addr start; /* the page's address; while it is being moved, its old address */
    uint64_t bytes;
    bfc_page handle;
    /* when a call of bfc_pool_trim_idle first found the page ready, as every call has since */
    uint64_t seen_ns;
    uint32_t look; /* the number of the last call that found it ready, from 1 on */
    uint32_t pins; /* how many pins keep the page where it is */
    /* whether the page is still mapped but unused, because unmapping failed: its addresses count as
     * bare */
    bool lost;
    bool asleep; /* whether the memory is gone and the handle void; the caller has the contents */
};

struct page_array {
    struct page *all;
    uint32_t count;
    struct host_array memory;
};

bool page_array_open(struct page_array *array, uint64_t most);

/* Makes room for `more` pages; false: the host has no memory for them. */
bool page_array_prepare(struct page_array *array, uint64_t more);

/* Adds a page at the end, for which page_array_prepare must have made room. */
void page_array_append(struct page_array *array, const struct page *page);

void page_array_sort(struct page_array *array);

struct page_table {
    struct page_array pages; /* the pages, sorted by address */
    uint32_t large;          /* how many pages have more than large_above bytes */
    uint64_t large_above;    /* a size in bytes, which the pool sets */
    uint32_t uneven;         /* how many pages are larger than the least size, `granule` */
    uint64_t granule;        /* the least size of a page in bytes, which the pool sets */
    uint32_t pinned;         /* how many pages are pinned; kept up to date by bfc_pool_pin */
};

/* Returns the place of the first page that ends above `address`; the count if there is none. */
uint32_t page_table_find(const struct page_table *table, bfc_addr address);

/* Adds pages, which are sorted by address; page_array_prepare must have made room. */
void page_table_add(struct page_table *table, const struct page *pages, uint32_t count);

/* Removes the pages that start where those of `gone` do; `gone` is sorted by address. */
void page_table_remove(struct page_table *table, const struct page_array *gone);

/* Returns the i-th page by address; i is below the count. */
static inline struct page *page_table_at(const struct page_table *table, uint32_t i) {
    return &table->pages.all[i];
}

static inline bfc_addr page_end(const struct page *page) {
    return page->start + page->bytes;
}

#endif

/*
 * The page table: which page is behind which addresses (pool/pages.h).
 *
 * An array, sorted by address and searched by bisection. A call that adds or removes many pages
 * copies each element that stays only once. A pool that grows at the end of its addresses adds at
 * the end of the array. The pool's lock guards the table.
 */
#ifndef BFC_POOL_PAGE_TABLE_H
#define BFC_POOL_PAGE_TABLE_H

#include "pool/pages.h"
#include "pool/structures/host.h"

struct page {
    bfc_addr start; /* the page's address; while the page is being moved, its old address */
    uint64_t bytes;
    bfc_page handle;
    /* since when every call of bfc_pool_trim_idle has found the page ready: the time in nanoseconds
     * of the first of these calls */
    uint64_t seen_ns;
    /* the number of the last call of bfc_pool_trim_idle that found the page ready; 0: no call has
     * yet */
    uint32_t look;
    uint32_t pins; /* how many calls of bfc_pool_pin keep the page where it is */
    /* whether unmapping the page has failed: it is still mapped, but unused, and its addresses
     * count as bare */
    bool lost;
    /* whether the page's memory is gone and `handle` is void, while the caller keeps the contents
     * elsewhere (bfc_pool_set_page) */
    bool asleep;
};

struct page_array {
    struct page *all;
    uint32_t count;
    struct host_array memory;
};

bool page_array_open(struct page_array *array, uint64_t most);

/* Makes sure that `more` more pages can be added. False: the host has no memory for them. */
bool page_array_prepare(struct page_array *array, uint64_t more);

/* Adds a page at the end. Before that, page_array_prepare must have succeeded for it. */
void page_array_append(struct page_array *array, const struct page *page);

void page_array_sort(struct page_array *array);

struct page_table {
    struct page_array pages; /* the pages, sorted by address */
    uint32_t large;          /* how many pages are larger than large_above */
    /* the size in bytes above which a page counts as large; set once, when the pool is made */
    uint64_t large_above;
    uint32_t uneven;  /* how many pages are larger than `granule` */
    uint64_t granule; /* the size of the smallest page in bytes; set once, when the pool is made */
    /* how many pages are pinned; bfc_pool_pin and bfc_pool_unpin update the count */
    uint32_t pinned;
};

/* Returns the index of the first page that ends above `address`; if there is none, the number of
 * pages. */
uint32_t page_table_find(const struct page_table *table, bfc_addr address);

/* Adds pages, which must be sorted by address. Before that, page_array_prepare must have succeeded
 * for them. */
void page_table_add(struct page_table *table, const struct page *pages, uint32_t count);

/* Removes the pages that start at the same addresses as those of `gone`, which must be sorted by
 * address. */
void page_table_remove(struct page_table *table, const struct page_array *gone);

/* Returns the page with index i in the order of addresses; i is below the number of pages. */
static inline struct page *page_table_at(const struct page_table *table, uint32_t i) {
    return &table->pages.all[i];
}

static inline bfc_addr page_end(const struct page *page) {
    return page->start + page->bytes;
}

#endif

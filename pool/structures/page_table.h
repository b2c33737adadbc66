/*
 * The page table: which page is behind which addresses (pool/pages.h).
 *
 * Records in no order, and their indices sorted by address, so that a search is by bisection.
 * Adding and removing move the indices that come after, 4 bytes for each page, once for many pages;
 * a pool that grows in place adds at the end. The pool's lock guards it.
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
    union {
        uint32_t look; /* ...the number of its last look that did, from 1 on */
        uint32_t next; /* of a vacant record in a table */
    };
    uint32_t pins; /* a count */
    bool lost;     /* mapped, without access, and not to be unmapped: its addresses are bare */
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

/* By address. */
void page_array_sort(struct page_array *array);

struct page_table {
    struct page_array records; /* in no order; vacant ones have no bytes */
    uint32_t *order;           /* of the records in use, by address */
    uint32_t count;            /* of them */
    uint32_t large;            /* of them, those above... */
    uint64_t large_above;      /* ...so many bytes; set by the owner */
    uint32_t uneven;           /* of them, those above a granule... */
    uint64_t granule;          /* ...which the owner sets */
    uint32_t pinned;           /* of them, counted by who pins */
    uint32_t vacant;           /* list of vacant records, by 1 more than the index; 0: none */
    struct host_array order_memory;
};

bool page_table_open(struct page_table *table, uint64_t most);
void page_table_close(struct page_table *table);

/* Makes room for so many more; false: the host has no memory for them. */
bool page_table_prepare(struct page_table *table, uint64_t more);

/* The first page that ends above `address`; `count` if there is none. */
uint32_t page_table_find(const struct page_table *table, bfc_addr address);

/* Adds pages, which are sorted by address, in their places; room was made. */
void page_table_add(struct page_table *table, const struct page *pages, uint32_t count);

/* Removes the pages that start where these do, which are sorted by address. */
void page_table_remove(struct page_table *table, const struct page_array *gone);

/* The i-th by address, below `count`. */
static inline struct page *page_table_at(const struct page_table *table, uint32_t i) {
    return &table->records.all[table->order[i]];
}

static inline bfc_addr page_end(const struct page *page) {
    return page->start + page->bytes;
}

#endif

#include "pool/structures/page_table.h"

#include <string.h>

bool page_array_open(struct page_array *array, uint64_t most) {
    array->count = 0;
    array->all = host_array_open(&array->memory, most * sizeof(struct page), 0);
    return array->all;
}

bool page_array_prepare(struct page_array *array, uint64_t more) {
    return more <= UINT32_MAX - array->count &&
           host_array_commit(&array->memory, (array->count + more) * sizeof(struct page));
}

void page_array_append(struct page_array *array, const struct page *page) {
    array->all[array->count++] = *page;
}

/* Shell's sort (1959), with each gap about a third of the one before. Not qsort, because it may
 * allocate memory. Speed matters little: the array is long only when all pages are given back. */
void page_array_sort(struct page_array *array) {
    struct page *all = array->all;
    for (uint32_t gap = array->count; gap > 1;) {
        gap = gap / 3 + 1 < gap ? gap / 3 + 1 : 1;
        for (uint32_t i = gap; i < array->count; i++) {
            struct page page = all[i];
            uint32_t to = i;
            for (; to >= gap && all[to - gap].start > page.start; to -= gap)
                all[to] = all[to - gap];
            all[to] = page;
        }
    }
}

uint32_t page_table_find(const struct page_table *table, bfc_addr address) {
    uint32_t low = 0, high = table->pages.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (page_end(page_table_at(table, middle)) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void count_page(struct page_table *table, const struct page *page, uint32_t change) {
    table->large += page->bytes > table->large_above ? change : 0;
    table->uneven += page->bytes > table->granule ? change : 0;
}

/* Inserts the new pages from the last to the first, so that each element that is in the array
 * already is copied only once. */
void page_table_add(struct page_table *table, const struct page *pages, uint32_t count) {
    struct page_array *array = &table->pages;
    uint32_t all = array->count + count;
    struct page *to = &array->all[all];
    for (uint32_t i = count; i-- > 0;) {
        uint32_t at = page_table_find(table, pages[i].start), above = array->count - at;
        to -= above;
        memmove(to, &array->all[at], above * sizeof *to);
        *--to = pages[i];
        count_page(table, to, 1);
        /* Only the first `at` elements of the array have not been copied to their new places yet,
         * and page_table_find must search only these. */
        array->count = at;
    }
    array->count = all;
}

/* Removes the pages that start at the same addresses as those of `gone`. Each element of the array
 * that stays is copied only once. */
void page_table_remove(struct page_table *table, const struct page_array *gone) {
    struct page *all = table->pages.all;
    uint32_t count = table->pages.count, kept = 0, from = 0;
    for (uint32_t i = 0; i <= gone->count; i++) {
        uint32_t to = i < gone->count ? page_table_find(table, gone->all[i].start) : count;
        if (kept != from)
            memmove(&all[kept], &all[from], (to - from) * sizeof *all);
        if (i < gone->count)
            count_page(table, &all[to], -1u);
        kept += to - from;
        from = to + 1;
    }
    table->pages.count = kept;
}

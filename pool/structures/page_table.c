#include "pool/structures/page_table.h"

#include <string.h>

bool page_array_open(struct page_array *array, uint64_t most) {
    if (!host_array_reserve(&array->memory, most * sizeof(struct page)))
        return false;
    array->all = (struct page *)(void *)array->memory.base;
    array->count = 0;
    return true;
}

void page_array_close(struct page_array *array) {
    host_array_drop(&array->memory);
    *array = (struct page_array){0};
}

bool page_array_prepare(struct page_array *array, uint64_t more) {
    return more <= UINT32_MAX - array->count &&
           host_array_commit(&array->memory, (array->count + more) * sizeof(struct page));
}

void page_array_append(struct page_array *array, const struct page *page) {
    array->all[array->count++] = *page;
}

/* Shell's sort (1959), each gap about a third of the last: qsort may allocate memory, and arrays
 * are long only when all pages are trimmed. */
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

bool page_table_open(struct page_table *table, uint64_t most) {
    *table = (struct page_table){0};
    if (!page_array_open(&table->records, most) ||
        !host_array_reserve(&table->order_memory, most * sizeof(uint32_t)))
        return false;
    table->order = (uint32_t *)(void *)table->order_memory.base;
    return true;
}

void page_table_close(struct page_table *table) {
    page_array_close(&table->records);
    host_array_drop(&table->order_memory);
    *table = (struct page_table){.count = 0};
}

bool page_table_prepare(struct page_table *table, uint64_t more) {
    return page_array_prepare(&table->records, more) &&
           host_array_commit(&table->order_memory, (table->count + more) * sizeof(uint32_t));
}

uint32_t page_table_find(const struct page_table *table, bfc_addr address) {
    uint32_t low = 0, high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (page_end(page_table_at(table, middle)) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t take_record(struct page_table *table, const struct page *page) {
    uint32_t record = table->vacant - 1;
    table->large += page->bytes > table->large_above;
    table->uneven += page->bytes > table->granule;
    if (!table->vacant) {
        page_array_append(&table->records, page);
        return table->records.count - 1;
    }
    table->vacant = table->records.all[record].next;
    table->records.all[record] = *page;
    return record;
}

static void vacate_record(struct page_table *table, uint32_t record) {
    const struct page *page = &table->records.all[record];
    table->large -= page->bytes > table->large_above;
    table->uneven -= page->bytes > table->granule;
    table->records.all[record] = (struct page){.next = table->vacant};
    table->vacant = record + 1;
}

/* Adds from the last page to the first, so that the entries between two added pages move up at
 * once. */
void page_table_add(struct page_table *table, const struct page *pages, uint32_t count) {
    uint32_t all = table->count + count, *to = &table->order[all];
    for (uint32_t i = count; i-- > 0;) {
        uint32_t at = page_table_find(table, pages[i].start), above = table->count - at;
        to -= above;
        memmove(to, &table->order[at], above * sizeof *to);
        *--to = take_record(table, &pages[i]);
        table->count = at; /* the entries that have not moved */
    }
    table->count = all;
}

/* The entries between two removed pages move down at once. */
void page_table_remove(struct page_table *table, const struct page_array *gone) {
    uint32_t *order = table->order, kept = 0, from = 0;
    for (uint32_t i = 0; i <= gone->count; i++) {
        uint32_t to = i < gone->count ? page_table_find(table, gone->all[i].start) : table->count;
        if (kept != from)
            memmove(&order[kept], &order[from], (to - from) * sizeof *order);
        if (i < gone->count)
            vacate_record(table, order[to]); /* a vacant record ends at 0: searches skip it */
        kept += to - from;
        from = to + 1;
    }
    table->count = kept;
}

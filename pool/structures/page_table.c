/* The page table. */
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

uint32_t page_table_find(const struct page_array *table, bfc_addr address) {
    uint32_t low = 0, high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (page_end(&table->all[middle]) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* From the last one on: what lies between two of them moves up as a whole. */
void page_table_add(struct page_array *table, const struct page *pages, uint32_t count) {
    struct page_array below = *table; /* what has not moved */
    struct page *to = &table->all[table->count + count];
    for (uint32_t i = count; i-- > 0;) {
        uint32_t at = page_table_find(&below, pages[i].start), above = below.count - at;
        to -= above;
        memmove(to, &table->all[at], above * sizeof(struct page));
        *--to = pages[i];
        below.count = at;
    }
    table->count += count;
}

/* What lies between two that go moves down as a whole. */
void page_table_remove(struct page_array *table, const struct page_array *gone) {
    uint32_t kept = 0, from = 0;
    for (uint32_t i = 0; i <= gone->count; i++) {
        uint32_t to = i < gone->count ? page_table_find(table, gone->all[i].start) : table->count;
        if (kept != from)
            memmove(&table->all[kept], &table->all[from], (to - from) * sizeof(struct page));
        kept += to - from;
        from = to + 1;
    }
    table->count = kept;
}

/* Shell's sort (1959) with gaps of about a third: the C library's may allocate, and few are sorted
 * but when all are trimmed. */
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

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

static void shift(struct page_array *table, uint32_t from, uint32_t to) {
    memmove(&table->all[to], &table->all[from], (table->count - from) * sizeof(struct page));
}

void page_table_add(struct page_array *table, const struct page *page) {
    uint32_t at = page_table_find(table, page->start);
    shift(table, at, at + 1);
    table->all[at] = *page;
    table->count++;
}

void page_table_remove(struct page_array *table, bfc_addr start) {
    uint32_t at = page_table_find(table, start);
    if (at == table->count || table->all[at].start != start)
        return;
    shift(table, at + 1, at);
    table->count--;
}

/*
 * Entries by address, which is what each begins with (a uint64_t; 0: no entry). None is taken out.
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_ADDRESS_TABLE_H
#define BFC_TOOLS_BFCSTAT_ADDRESS_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct address_table {
    void *entries; /* `slots` of them, those of address 0 empty; moved by address_table_put */
    size_t entry_size, count, slots;
};

/* NULL: there is none. O(1). */
void *address_table_find(const struct address_table *table, uint64_t address);

/* The one of the address, which is not 0; new ones are zero beside it. NULL: no memory; the table
 * is as before. `entry_size` is the same in each call. */
void *address_table_put(struct address_table *table, uint64_t address, size_t entry_size);

void address_table_free(struct address_table *table);

#endif

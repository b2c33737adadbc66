/*
 * A hash table of entries by address. Each entry begins with its address, a uint64_t above 0.
 * Entries are never removed.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_ADDRESS_TABLE_H
#define BFC_TOOLS_BFCSTAT_ADDRESS_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct address_table {
    /* room for `slots` entries; one whose address is 0 is empty; address_table_put may move the
     * entries */
    void *entries;
    size_t entry_size, count, slots;
};

/* Returns the entry of the address; NULL: there is none. O(1). */
void *address_table_find(const struct address_table *table, uint64_t address);

/* Returns the entry of the address, which must not be 0; a new entry is zero except for its
 * address. NULL: no memory; no entry has changed. `entry_size` must be the same in each call. */
void *address_table_put(struct address_table *table, uint64_t address, size_t entry_size);

void address_table_free(struct address_table *table);

#endif

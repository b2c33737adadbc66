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
    /* An array of `slots` entries, of which `count` are used; an unused one has the address 0.
     * address_table_put may move the array, so its next call makes pointers to entries invalid. */
    void *entries;
    size_t entry_size, count, slots;
};

/* Returns the entry of the address, in time that does not depend on the size of the table; NULL:
 * there is none. */
void *address_table_find(const struct address_table *table, uint64_t address);

/* Returns the entry of the address, which must not be 0. If there is none, adds one that is zero
 * except for its address. NULL: no memory, and no entry has changed. `entry_size`, in bytes, must
 * be the same in each call. */
void *address_table_put(struct address_table *table, uint64_t address, size_t entry_size);

void address_table_free(struct address_table *table);

#endif

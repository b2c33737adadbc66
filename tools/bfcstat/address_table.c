/* The table uses open addressing and is at most half full, so that searches stay short. */
#include "tools/bfcstat/address_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"

enum { FIRST_SLOTS = 4096 };

/* Returns the slot of the address's entry, or the empty slot in which the entry would be put. */
static uint64_t *slot_of(const struct address_table *table, uint64_t address) {
    for (size_t i = (size_t)(address * BFC_MIX_STEP >> 20);; i++) {
        char *entries = table->entries;
        uint64_t *slot = (void *)(entries + (i & (table->slots - 1)) * table->entry_size);
        if (*slot == 0 || *slot == address)
            return slot;
    }
}

void *address_table_find(const struct address_table *table, uint64_t address) {
    uint64_t *slot = table->slots ? slot_of(table, address) : NULL;
    return slot && *slot ? slot : NULL;
}

static bool make_room(struct address_table *table) {
    struct address_table larger = *table;
    larger.slots = table->slots ? table->slots * 2 : FIRST_SLOTS;
    larger.entries = calloc(larger.slots, larger.entry_size);
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < table->slots; i++) {
        const char *entries = table->entries;
        uint64_t address;
        memcpy(&address, entries + i * table->entry_size, sizeof address);
        if (address)
            memcpy(slot_of(&larger, address), entries + i * table->entry_size, table->entry_size);
    }
    free(table->entries);
    *table = larger;
    return true;
}

void *address_table_put(struct address_table *table, uint64_t address, size_t entry_size) {
    table->entry_size = entry_size;
    if (2 * table->count >= table->slots && !make_room(table))
        return NULL;
    uint64_t *slot = slot_of(table, address);
    table->count += *slot == 0;
    *slot = address;
    return slot;
}

void address_table_free(struct address_table *table) {
    free(table->entries);
    *table = (struct address_table){.entries = NULL};
}

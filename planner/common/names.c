#include "planner/common/names.h"

#include <stdlib.h>
#include <string.h>

/* Returns the 64-bit FNV-1a hash of the name, with its high bits mixed into the low ones, because
 * only the low ones choose the table's slot. */
static uint64_t hash_name(struct name name) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ (unsigned char)name.text[i]) * 0x100000001b3u;
    return hash ^ (hash >> 29);
}

static bool same_name(struct name a, struct name b) {
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

void names_free(struct names *names) {
    free(names->list);
    free(names->slots);
    *names = (struct names){0};
}

/* Returns the slot of the hash table that has the name's number, or the free slot into which a new
 * name's number would go. */
static uint32_t slot_of(const struct names *names, struct name name) {
    uint32_t slot = (uint32_t)hash_name(name) & names->mask;
    while (names->slots[slot] != NAMES_NONE && !same_name(names->list[names->slots[slot]], name))
        slot = (slot + 1) & names->mask;
    return slot;
}

uint32_t names_find(const struct names *names, struct name name) {
    return !names->slots ? NAMES_NONE : names->slots[slot_of(names, name)];
}

static bool grow_table(struct names *names) {
    const uint32_t room = names->room == 0 ? 64 : names->room * 2;
    if (room > UINT32_MAX / 4)
        return false;
    struct name *list = realloc(names->list, room * sizeof *list);
    if (!list)
        return false;
    names->list = list;
    uint32_t *slots = malloc((size_t)room * 2 * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0xff, (size_t)room * 2 * sizeof *slots);
    free(names->slots);
    names->slots = slots;
    names->mask = room * 2 - 1;
    names->room = room;
    for (uint32_t i = 0; i < names->count; i++)
        names->slots[slot_of(names, names->list[i])] = i;
    return true;
}

uint32_t names_add(struct names *names, struct name name, bool *fresh) {
    *fresh = false;
    if (names->count == names->room && !grow_table(names))
        return NAMES_NONE;
    const uint32_t slot = slot_of(names, name);
    if (names->slots[slot] == NAMES_NONE) {
        names->list[names->count] = name;
        names->slots[slot] = names->count++;
        *fresh = true;
    }
    return names->slots[slot];
}

// Which handles are live: a hash table of object addresses, so that stale and foreign handles are
// answered with an error instead of being followed. O(1) on average. Guarded by the lock.
#include "sim/base/handle.h"

#include "sim/base/random.h"

#include <stdlib.h>

enum { BUCKETS = 4096 };

struct entry {
    struct entry *next;
    const void *pointer;
    enum sim_handle kind;
};

static struct entry *buckets[BUCKETS];

static struct entry **find(const void *pointer) {
    struct entry **link = &buckets[sim_mix((uintptr_t)pointer) % BUCKETS];
    while (*link != NULL && (*link)->pointer != pointer) {
        link = &(*link)->next;
    }
    return link;
}

bool sim_handle_add(const void *pointer, enum sim_handle kind) {
    struct entry *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        return false;
    }
    struct entry **link = &buckets[sim_mix((uintptr_t)pointer) % BUCKETS];
    *entry = (struct entry){.next = *link, .pointer = pointer, .kind = kind};
    *link = entry;
    return true;
}

void sim_handle_remove(const void *pointer) {
    struct entry **link = find(pointer);
    struct entry *entry = *link;
    if (entry != NULL) {
        *link = entry->next;
        free(entry);
    }
}

bool sim_handle_is(const void *pointer, enum sim_handle kind) {
    const struct entry *entry = *find(pointer);
    return entry != NULL && entry->kind == kind;
}

/* What is stored for single blocks (SYNC_MEMOPS, IPC handles), in a hash table with chains. */
#include "interpose/pointers/block_attributes.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/atomic.h"

enum { CHAINS = 1024 };

struct entry {
    struct bfc_block_attributes attributes;
    struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *chains[CHAINS];
/* atomic: the number of blocks with attributes; read without the lock */
size_t bfc_block_attributes_count;

/* Returns the link to the block's entry in the hash table, or to the end of its chain if there is
 * none. Ids rise by one, so that their low bits spread well over the chains. */
static struct entry **find_entry(uint64_t id) {
    struct entry **link = &chains[id % CHAINS];
    while (*link && (*link)->attributes.id != id)
        link = &(*link)->next;
    return link;
}

static struct entry *find_or_add_entry(uint64_t id, const void *owner) {
    struct entry **link = find_entry(id);
    if (!*link && (*link = calloc(1, sizeof **link))) {
        (*link)->attributes.id = id;
        (*link)->attributes.owner = owner;
        bfc_store_release(&bfc_block_attributes_count, bfc_block_attributes_count + 1);
    }
    return *link;
}

/* Removes the entry to which `*link` points from the hash table; false: it points to none. */
static bool take_out_entry(struct entry **link, struct bfc_block_attributes *attributes) {
    struct entry *entry = *link;
    if (!entry)
        return false;
    *link = entry->next;
    *attributes = entry->attributes;
    free(entry);
    bfc_store_release(&bfc_block_attributes_count, bfc_block_attributes_count - 1);
    return true;
}

static struct entry **find_entry_of(const void *owner) {
    struct entry **link = chains;
    for (size_t i = 0; i < CHAINS; i++)
        for (link = &chains[i]; *link; link = &(*link)->next)
            if ((*link)->attributes.owner == owner)
                return link;
    return link;
}

bool bfc_block_attributes_find(uint64_t id, struct bfc_block_attributes *attributes) {
    if (!bfc_block_attributes_exist())
        return false;
    pthread_mutex_lock(&lock);
    const struct entry *entry = *find_entry(id);
    if (entry)
        *attributes = entry->attributes;
    pthread_mutex_unlock(&lock);
    return entry;
}

bool bfc_block_attributes_set_sync_memops(uint64_t id, const void *owner, bool on) {
    pthread_mutex_lock(&lock);
    struct entry *entry = find_or_add_entry(id, owner);
    if (entry)
        entry->attributes.sync_memops = on;
    pthread_mutex_unlock(&lock);
    return entry;
}

bool bfc_block_attributes_set_handle(uint64_t id, const void *owner, CUipcMemHandle *handle) {
    pthread_mutex_lock(&lock);
    struct entry *entry = find_or_add_entry(id, owner);
    if (entry && entry->attributes.exported)
        *handle = entry->attributes.handle;
    else if (entry)
        entry->attributes.handle = *handle;
    if (entry)
        entry->attributes.exported = true;
    pthread_mutex_unlock(&lock);
    return entry;
}

bool bfc_block_attributes_take(uint64_t id, struct bfc_block_attributes *attributes) {
    if (!bfc_block_attributes_exist())
        return false;
    pthread_mutex_lock(&lock);
    bool taken = take_out_entry(find_entry(id), attributes);
    pthread_mutex_unlock(&lock);
    return taken;
}

bool bfc_block_attributes_take_of(const void *owner, struct bfc_block_attributes *attributes) {
    if (!bfc_block_attributes_exist())
        return false;
    pthread_mutex_lock(&lock);
    bool taken = take_out_entry(find_entry_of(owner), attributes);
    pthread_mutex_unlock(&lock);
    return taken;
}

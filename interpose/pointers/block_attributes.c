/* Block attributes, in a hash table with chains, which doubles as it fills. */
#include "interpose/pointers/block_attributes.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/atomic.h"

struct entry {
    struct bfc_block_attributes attributes;
    struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry **chains;
static size_t chain_count;         /* a power of two, or 0 */
size_t bfc_block_attributes_count; /* atomic: read without the lock */

/* ---- under the lock ---- */

/* Ids rise by one, so that their low bits spread well. */
static struct entry **chain_of(uint64_t id) {
    return &chains[id & (chain_count - 1)];
}

static struct entry **find_entry(uint64_t id) {
    struct entry **link = chain_count ? chain_of(id) : NULL;
    while (link && *link && (*link)->attributes.id != id)
        link = &(*link)->next;
    return link && *link ? link : NULL;
}

static bool grow_table(void) {
    size_t old_count = chain_count, count = old_count ? 2 * old_count : 64;
    struct entry **old = chains, **grown = calloc(count, sizeof *grown);
    if (!grown)
        return old_count != 0; /* longer chains will do */
    chains = grown;
    chain_count = count;
    for (size_t i = 0; i < old_count; i++)
        while (old[i]) {
            struct entry *entry = old[i];
            old[i] = entry->next;
            entry->next = *chain_of(entry->attributes.id);
            *chain_of(entry->attributes.id) = entry;
        }
    free(old);
    return true;
}

static struct entry *add_entry(uint64_t id, const void *owner) {
    if (bfc_block_attributes_count >= chain_count && !grow_table())
        return NULL;
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->attributes.id = id;
    entry->attributes.owner = owner;
    entry->next = *chain_of(id);
    *chain_of(id) = entry;
    bfc_store_release(&bfc_block_attributes_count, bfc_block_attributes_count + 1);
    return entry;
}

static struct entry *find_or_add_entry(uint64_t id, const void *owner) {
    struct entry **link = find_entry(id);
    return link ? *link : add_entry(id, owner);
}

static void take_out_entry(struct entry **link, struct bfc_block_attributes *attributes) {
    struct entry *entry = *link;
    *link = entry->next;
    *attributes = entry->attributes;
    free(entry);
    bfc_store_release(&bfc_block_attributes_count, bfc_block_attributes_count - 1);
}

static struct entry **find_entry_of(const void *owner) {
    for (size_t i = 0; i < chain_count; i++)
        for (struct entry **link = &chains[i]; *link; link = &(*link)->next)
            if ((*link)->attributes.owner == owner)
                return link;
    return NULL;
}

/* ---- for other files ---- */

bool bfc_block_attributes_find(uint64_t id, struct bfc_block_attributes *attributes) {
    if (!bfc_block_attributes_exist())
        return false;
    pthread_mutex_lock(&lock);
    struct entry **link = find_entry(id);
    if (link)
        *attributes = (*link)->attributes;
    pthread_mutex_unlock(&lock);
    return link;
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
    struct entry **link = find_entry(id);
    if (link)
        take_out_entry(link, attributes);
    pthread_mutex_unlock(&lock);
    return link;
}

bool bfc_block_attributes_take_of(const void *owner, struct bfc_block_attributes *attributes) {
    if (!bfc_block_attributes_exist())
        return false;
    pthread_mutex_lock(&lock);
    struct entry **link = find_entry_of(owner);
    if (link)
        take_out_entry(link, attributes);
    pthread_mutex_unlock(&lock);
    return link;
}

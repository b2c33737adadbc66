/* The map of regions, a sorted array under a sequence lock, and the list of regions that the driver
 * is freeing. */
#include "interpose/arena/region_map.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* Readers load the fields atomically while a writer may change them, and discard what they have
 * read if the sequence number has changed. */
struct region {
    uint64_t start, end;
    void *owner;
};

/* An array of regions with its count in the same struct, so that a reader never combines an array
 * with the count of another one. */
struct table {
    size_t count, capacity;
    /* the smaller table that this one replaced, kept since a reader may still use it */
    struct table *outgrown;
    struct region regions[];
};

enum { MOST_TRIES = 100 };

static struct table no_regions;

uint64_t bfc_region_sequence; /* odd while a writer changes the map */
static struct {
    pthread_mutex_t lock; /* the lock that threads hold while they change the map */
    struct table *table;
} map = {.lock = PTHREAD_MUTEX_INITIALIZER, .table = &no_regions};

#define READ(field) bfc_load_relaxed(&(field))
#define WRITE(field, value) bfc_store_relaxed(&(field), (value))

/* Returns the index of the first region that ends above `address`. */
static size_t find_region_slot(const struct table *table, uint64_t address) {
    size_t low = 0, high = READ(table->count);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (READ(table->regions[middle].end) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the region that holds `address`; NULL as the result's owner: there is none. */
static struct region search_regions(uint64_t address) {
    const struct table *table = bfc_load_acquire(&map.table);
    size_t slot = find_region_slot(table, address);
    if (slot >= READ(table->count) || READ(table->regions[slot].start) > address)
        return (struct region){0};
    return (struct region){READ(table->regions[slot].start), READ(table->regions[slot].end),
                           READ(table->regions[slot].owner)};
}

__thread struct bfc_region_seen bfc_regions_seen[BFC_REGIONS_SEEN] INITIAL_EXEC;

static void note_seen(uint64_t address, uint64_t sequence, const struct region *found) {
    if (found->owner)
        bfc_regions_seen[(address >> BFC_REGION_SEEN_BITS) % BFC_REGIONS_SEEN] =
            (struct bfc_region_seen){sequence, found->start, found->end - found->start,
                                     found->owner};
}

/* Searches under the lock, because a thread that waits for a lock sleeps. A thread with a real-time
 * priority that tried again without a pause could keep a writer of lower priority from running. */
static void *find_in_turn(uint64_t address) {
    pthread_mutex_lock(&map.lock);
    struct region found = search_regions(address);
    pthread_mutex_unlock(&map.lock);
    return found.owner;
}

void *bfc_region_find(uint64_t address) {
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        uint64_t before = bfc_load_acquire(&bfc_region_sequence);
        if (before & 1)
            continue;
        struct region found = search_regions(address);
        bfc_barrier_acquire();
        if (READ(bfc_region_sequence) != before)
            continue;
        note_seen(address, before, &found);
        return found.owner;
    }
    return find_in_turn(address);
}

static void begin_write(void) {
    pthread_mutex_lock(&map.lock);
    WRITE(bfc_region_sequence, bfc_region_sequence + 1);
    bfc_barrier_release();
}

static void end_write(void) {
    bfc_store_release(&bfc_region_sequence, bfc_region_sequence + 1);
    pthread_mutex_unlock(&map.lock);
}

static void put_region(struct table *table, size_t slot, struct region region) {
    WRITE(table->regions[slot].start, region.start);
    WRITE(table->regions[slot].end, region.end);
    WRITE(table->regions[slot].owner, region.owner);
}

/* Makes room for one more region: a full table is replaced by one of twice the size. All replaced
 * tables are kept; together they are smaller than the present one. False: the host has no
 * memory. */
static bool make_room_for_region(void) {
    struct table *old = map.table;
    if (old->count < old->capacity)
        return true;
    size_t capacity = old->capacity ? 2 * old->capacity : 64;
    struct table *table = calloc(1, sizeof *table + capacity * sizeof table->regions[0]);
    if (!table)
        return false;
    for (size_t i = 0; i < old->count; i++)
        table->regions[i] = old->regions[i];
    table->count = old->count;
    table->capacity = capacity;
    table->outgrown = old;
    bfc_store_release(&map.table, table);
    return true;
}

static void remove_slots(size_t first, size_t after) {
    struct table *table = map.table;
    for (size_t i = after; i < table->count; i++)
        put_region(table, first + i - after, table->regions[i]);
    WRITE(table->count, table->count - (after - first));
}

static void drop_overlaps(uint64_t start, uint64_t end) {
    size_t first = find_region_slot(map.table, start);
    size_t after = first;
    while (after < map.table->count && map.table->regions[after].start < end)
        after++;
    if (after > first)
        remove_slots(first, after);
}

static void insert_region(struct region region) {
    struct table *table = map.table;
    size_t slot = find_region_slot(table, region.start);
    for (size_t i = table->count; i > slot; i--)
        put_region(table, i, table->regions[i - 1]);
    put_region(table, slot, region);
    WRITE(table->count, table->count + 1);
}

bool bfc_region_add(uint64_t start, uint64_t bytes, void *owner) {
    begin_write();
    drop_overlaps(start, start + bytes);
    bool room = make_room_for_region();
    if (room)
        insert_region((struct region){start, start + bytes, owner});
    end_write();
    return room;
}

void bfc_region_remove(uint64_t start, const void *owner) {
    begin_write();
    const struct table *table = map.table;
    size_t slot = find_region_slot(table, start);
    if (slot < table->count && table->regions[slot].start == start &&
        table->regions[slot].owner == owner)
        remove_slots(slot, slot + 1);
    end_write();
}

void *bfc_region_overlapping(uint64_t start, uint64_t bytes) {
    pthread_mutex_lock(&map.lock);
    const struct table *table = map.table;
    size_t slot = find_region_slot(table, start);
    bool overlaps = slot < table->count && table->regions[slot].start < start + bytes;
    void *owner = overlaps ? table->regions[slot].owner : NULL;
    pthread_mutex_unlock(&map.lock);
    return owner;
}

bool bfc_region_next(uint64_t address, const void *owner, uint64_t *start, uint64_t *bytes) {
    pthread_mutex_lock(&map.lock);
    const struct table *table = map.table;
    size_t slot = find_region_slot(table, address);
    while (slot < table->count && table->regions[slot].owner != owner)
        slot++;
    bool found = slot < table->count;
    if (found) {
        *start = table->regions[slot].start;
        *bytes = table->regions[slot].end - *start;
    }
    pthread_mutex_unlock(&map.lock);
    return found;
}

void bfc_region_remove_owner(const void *owner) {
    begin_write();
    struct table *table = map.table;
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->regions[i].owner != owner)
            put_region(table, kept++, table->regions[i]);
    WRITE(table->count, kept);
    end_write();
}

static pthread_mutex_t leaving_lock = PTHREAD_MUTEX_INITIALIZER;
/* the list of regions that the driver is freeing; changed under leaving_lock, read atomically */
static struct bfc_leaving *leaving;

void bfc_leaving_begin(struct bfc_leaving *region) {
    pthread_mutex_lock(&leaving_lock);
    region->next = leaving;
    bfc_store_release(&leaving, region);
    pthread_mutex_unlock(&leaving_lock);
}

void bfc_leaving_end(const struct bfc_leaving *region) {
    pthread_mutex_lock(&leaving_lock);
    struct bfc_leaving **link = &leaving;
    while (*link != region)
        link = &(*link)->next;
    bfc_store_release(link, region->next);
    pthread_mutex_unlock(&leaving_lock);
}

bool bfc_leaving_find(uint64_t address, uint64_t *start, uint64_t *bytes) {
    if (LIKELY(!bfc_load_acquire(&leaving)))
        return false;
    pthread_mutex_lock(&leaving_lock);
    const struct bfc_leaving *region = leaving;
    while (region && address - region->start >= region->bytes)
        region = region->next;
    if (region) {
        *start = region->start;
        *bytes = region->bytes;
    }
    pthread_mutex_unlock(&leaving_lock);
    return region;
}

uint64_t bfc_leaving_bytes(const void *device) {
    uint64_t bytes = 0;
    if (LIKELY(!bfc_load_acquire(&leaving)))
        return 0;
    pthread_mutex_lock(&leaving_lock);
    for (const struct bfc_leaving *region = leaving; region; region = region->next)
        if (region->device == device && !bfc_load_acquire(region->ended))
            bytes += region->bytes;
    pthread_mutex_unlock(&leaving_lock);
    return bytes;
}

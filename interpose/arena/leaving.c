/* The list of regions on their way to the driver: one for each thread that gives a region back. */
#include "interpose/arena/leaving.h"

#include <pthread.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/compiler.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bfc_leaving *first; /* guarded by the lock; read atomically */

void bfc_leaving_begin(struct bfc_leaving *region) {
    pthread_mutex_lock(&lock);
    region->next = first;
    bfc_store_release(&first, region);
    pthread_mutex_unlock(&lock);
}

void bfc_leaving_end(const struct bfc_leaving *region) {
    pthread_mutex_lock(&lock);
    struct bfc_leaving **link = &first;
    while (*link != region)
        link = &(*link)->next;
    bfc_store_release(link, region->next);
    pthread_mutex_unlock(&lock);
}

bool bfc_leaving_find(uint64_t address, uint64_t *start, uint64_t *bytes) {
    if (LIKELY(!bfc_load_acquire(&first)))
        return false;
    pthread_mutex_lock(&lock);
    const struct bfc_leaving *region = first;
    while (region && address - region->start >= region->bytes)
        region = region->next;
    if (region) {
        *start = region->start;
        *bytes = region->bytes;
    }
    pthread_mutex_unlock(&lock);
    return region;
}

uint64_t bfc_leaving_bytes(const void *device) {
    uint64_t bytes = 0;
    if (LIKELY(!bfc_load_acquire(&first)))
        return 0;
    pthread_mutex_lock(&lock);
    for (const struct bfc_leaving *region = first; region; region = region->next)
        if (region->device == device && !bfc_load_acquire(region->ended))
            bytes += region->bytes;
    pthread_mutex_unlock(&lock);
    return bytes;
}

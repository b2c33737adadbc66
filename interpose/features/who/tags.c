#include "interpose/features/who/tags.h"

#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/api/bfcpreload.h"
#include "interpose/features/who/sites.h"

enum { LEVELS = 24, NAME_BYTES = 64, TEXT_BYTES = 512, OPEN = 1024, PROBES = 16 };

struct level {
    uint64_t domain;
    uint64_t range; /* id of the started range that has this name; 0: the name was pushed */
    uint32_t name;
};

static __thread struct {
    struct level levels[LEVELS];
    unsigned count;
    unsigned beyond; /* how many names were pushed while `levels` was full, and not popped yet */
    bool known;      /* whether `text` belongs to the names that are in `levels` now */
    uint32_t text;   /* offset in bfc_sites.texts of the names in `levels`, joined to one text */
} own INITIAL_EXEC;

static uint64_t open_ranges[OPEN]; /* atomic: ids of started ranges that have not ended; 0: the
                                      entry is free */

static uint64_t *slot_with(uint64_t id, uint64_t wanted) {
    size_t first = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 54);
    for (size_t i = 0; i < PROBES; i++)
        if (bfc_load_relaxed(&open_ranges[(first + i) % OPEN]) == wanted)
            return &open_ranges[(first + i) % OPEN];
    return NULL;
}

static bool open_range(uint64_t id) {
    uint64_t *slot, none = 0;
    while ((slot = slot_with(id, 0)) && !bfc_compare_exchange_relaxed(slot, &none, id))
        none = 0;
    return slot;
}

static void remove_level(unsigned i) {
    memmove(&own.levels[i], &own.levels[i + 1], (own.count - i - 1) * sizeof own.levels[0]);
    own.count--;
    own.known = false;
}

/* Removes from the thread's stack of names the ranges that another thread has ended. */
static void drop_ended(void) {
    for (unsigned i = own.count; i-- > 0;)
        if (own.levels[i].range && !slot_with(own.levels[i].range, own.levels[i].range))
            remove_level(i);
}

static bool add_level(uint64_t domain, uint64_t range, uint32_t name) {
    if (own.count == LEVELS)
        drop_ended();
    if (own.count == LEVELS)
        return false;
    own.levels[own.count++] = (struct level){.domain = domain, .range = range, .name = name};
    own.known = false;
    return true;
}

uint32_t bfc_tags_name(const char *name) {
    char kept[NAME_BYTES];
    if (!name || !bfc_sites_begin())
        return 0;
    size_t length = strnlen(name, sizeof kept - 1);
    memcpy(kept, name, length);
    kept[length] = '\0';
    pool_lock(&bfc_who_lock);
    uint32_t known = bfc_sites_tag(kept);
    pool_unlock(&bfc_who_lock);
    return known;
}

unsigned bfc_tags_push(uint64_t domain, uint32_t name) {
    unsigned before = own.count + own.beyond;
    own.beyond += !add_level(domain, 0, name);
    return before;
}

bool bfc_tags_pop(uint64_t domain) {
    unsigned i = own.count;
    if (own.beyond) {
        own.beyond--;
        return true;
    }
    while (i > 0 && (own.levels[i - 1].range || own.levels[i - 1].domain != domain))
        i--;
    if (i > 0)
        remove_level(i - 1);
    return i > 0;
}

void bfc_tags_start(uint64_t id, uint32_t name) {
    if (open_range(id) && !add_level(0, id, name))
        bfc_tags_end(id);
}

void bfc_tags_end(uint64_t id) {
    uint64_t *slot = slot_with(id, id);
    if (slot)
        bfc_store_relaxed(slot, 0);
}

static uint32_t join_tags(void) {
    char text[TEXT_BYTES];
    size_t length = 0;
    for (unsigned i = 0; i < own.count; i++) {
        const char *name = bfc_sites.texts + own.levels[i].name;
        size_t size = strlen(name);
        if (size == 0 || length + size + 2 > sizeof text)
            continue;
        if (length)
            text[length++] = '/';
        memcpy(text + length, name, size);
        length += size;
    }
    text[length] = '\0';
    pool_lock(&bfc_who_lock);
    uint32_t joined = bfc_sites_tag(text);
    pool_unlock(&bfc_who_lock);
    return joined;
}

uint32_t bfc_tags_now(void) {
    if (LIKELY(own.count == 0))
        return 0;
    drop_ended();
    if (!own.known) {
        own.text = own.count ? join_tags() : 0;
        own.known = true;
    }
    return own.text;
}

/* The domain of names from the public interface. An NVTX domain is a pointer from another
 * injection, or a number that nvtx.c counts up; neither has this value. */
#define PUBLIC_DOMAIN UINT64_MAX

int bfc_tag_push(const char *name) {
    return name ? (int)bfc_tags_push(PUBLIC_DOMAIN, bfc_tags_name(name)) : BFCPRELOAD_BAD_ARGUMENT;
}

int bfc_tag_pop(void) {
    return bfc_tags_pop(PUBLIC_DOMAIN) ? 0 : BFCPRELOAD_NO_TAG;
}

#include "interpose/features/who/sites.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/features/who/stacks/objects.h"
#include "interpose/features/who/stacks/unwind_table.h"
#include "interpose/host/c_library.h"
#include "interpose/host/scratch.h"

enum {
    SITES = 1 << 14,
    SLOTS = SITES * 2,
    FRAMES = 1 << 19,
    OBJECTS = 1 << 12,
    TEXTS = 1 << 21,
    TEXT_SLOTS = 1 << 15,
    TAGS = 1 << 12,
};

/* The tables in memory. Other processes read the sites, frames, objects and texts from a file
 * (layout/who.h); the other arrays serve to find elements in those. */
static struct tables {
    struct bfc_who_site sites[SITES];
    struct bfc_who_frame frames[FRAMES];
    struct bfc_who_object objects[OBJECTS];
    char texts[TEXTS];
    uint64_t hashes[SITES];
    uint32_t slots[SLOTS];           /* hash table: each slot has the index of a site; 0: the slot
                                        is free */
    uint32_t text_slots[TEXT_SLOTS]; /* hash table: each slot has the offset of a text; 0: the slot
                                        is free */
    uint64_t maps[OBJECTS];          /* for each object, the address of its struct link_map; 0: it
                                        was unloaded */
} * tables;

struct bfc_sites bfc_sites;
struct pool_lock bfc_who_lock;

/* Makes the lock free in the child of a fork. The thread that held it during the fork, if any, does
 * not exist in the child, and so could never release it. */
static void in_child(void) {
    bfc_who_lock = (struct pool_lock){0};
}

static void begin_forks(void) {
    int (*at_fork)(void (*)(void), void (*)(void), void (*)(void), void *);
    /* pthread_atfork calls this function, but glibc exports pthread_atfork for old programs only */
    *(void **)&at_fork = bfc_c_function("__register_atfork");
    if (at_fork)
        at_fork(NULL, NULL, in_child, NULL);
}

/* Reserves the tables. Site 0 stands for all call stacks without a site of their own, and has no
 * frames; the text at offset 0 is empty. */
static void begin_sites(void) {
    tables = bfc_scratch_begin(sizeof *tables);
    if (!tables)
        return;
    begin_forks();
    bfc_sites = (struct bfc_sites){.sites = tables->sites,
                                   .frames = tables->frames,
                                   .objects = tables->objects,
                                   .texts = tables->texts,
                                   .site_count = 1,
                                   .text_bytes = 1};
}

bool bfc_sites_begin(void) {
    static uint32_t begun; /* atomic: 1 once the tables are reserved, or the attempt has failed */
    if (UNLIKELY(!bfc_load_acquire(&begun))) {
        pool_lock(&bfc_who_lock);
        if (!begun)
            begin_sites();
        bfc_store_release(&begun, 1);
        pool_unlock(&bfc_who_lock);
    }
    return tables;
}

uint32_t bfc_sites_executable(void) {
    static uint32_t text;
    static char path[PATH_MAX];
    if (!text && !path[0]) {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = '\0';
        text = bfc_sites_text(path);
    }
    return text;
}

struct bfc_stack_tables bfc_sites_now(void) {
    pool_lock(&bfc_who_lock);
    uint32_t executable = bfc_sites_executable();
    struct bfc_stack_tables now = {.sites = bfc_sites.sites,
                                   .frames = bfc_sites.frames,
                                   .objects = bfc_sites.objects,
                                   .texts = bfc_sites.texts,
                                   .known = {.sites = (uint32_t)bfc_sites.site_count,
                                             .frames = (uint32_t)bfc_sites.frame_count,
                                             .objects = (uint32_t)bfc_sites.object_count,
                                             .texts = (uint32_t)bfc_sites.text_bytes,
                                             .executable = executable}};
    pool_unlock(&bfc_who_lock);
    return now;
}

static uint64_t hash_text(const char *text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* the start value of the hash FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* Returns the slot of the hash table that holds the text, or the free slot where it belongs. */
static uint32_t *slot_of_text(const char *text) {
    size_t slot = hash_text(text) % TEXT_SLOTS;
    while (tables->text_slots[slot] && strcmp(tables->texts + tables->text_slots[slot], text) != 0)
        slot = (slot + 1) % TEXT_SLOTS;
    return &tables->text_slots[slot];
}

uint32_t bfc_sites_text(const char *text) {
    static size_t kept;
    size_t size = strlen(text) + 1;
    uint32_t *slot = slot_of_text(text);
    if (*slot || size == 1 || size > TEXTS - bfc_sites.text_bytes || kept > TEXT_SLOTS / 2)
        return *slot;
    uint32_t offset = (uint32_t)bfc_sites.text_bytes;
    memcpy(tables->texts + offset, text, size);
    bfc_sites.text_bytes += size;
    *slot = offset;
    kept++;
    return offset;
}

uint32_t bfc_sites_tag(const char *text) {
    static size_t kept;
    if (kept == TAGS && *slot_of_text(text) == 0)
        return bfc_sites_text("(other tags)");
    kept += *slot_of_text(text) == 0;
    return bfc_sites_text(text);
}

static bool is_same(const struct bfc_who_object *one, const struct bfc_who_object *other) {
    return one->start == other->start && one->end == other->end && one->path == other->path;
}

/* Returns the index of a loaded object in the table, to which the object is added if it is new;
 * OBJECTS if the table is full. Unloaded objects stay in the table, because frames refer to
 * them. */
static size_t list_object(const struct bfc_who_object *object, uint64_t map) {
    size_t i = 0;
    while (i < bfc_sites.object_count && !is_same(&bfc_sites.objects[i], object))
        i++;
    if (i == OBJECTS)
        return i;
    if (i == bfc_sites.object_count)
        bfc_sites.objects[bfc_sites.object_count++] = *object;
    tables->maps[i] = map;
    return i;
}

static size_t index_of(struct bfc_readable *readable, const struct bfc_object *object) {
    static char path[PATH_MAX];
    struct bfc_who_object listed = {.end = object->end};
    if (!bfc_object_name(readable, object, &listed.start, path, sizeof path))
        return OBJECTS;
    listed.path = bfc_sites_text(path);
    return list_object(&listed, object->map);
}

/* Forgets all unwind rules if a library was unloaded, since another may be loaded at its
 * addresses. */
static void look_for_unloaded(struct bfc_readable *readable) {
    bool unloaded = false;
    for (size_t i = 0; i < bfc_sites.object_count; i++) {
        struct bfc_object now;
        if (tables->maps[i] && (!bfc_object_at(readable, bfc_sites.objects[i].end - 1, &now) ||
                                now.map != tables->maps[i])) {
            tables->maps[i] = 0;
            unloaded = true;
        }
    }
    if (unloaded)
        bfc_frame_rules_forget();
}

/* A cache of one element: the loaded object that contains the last frame looked up. It is tried
 * first for the next frame, because neighbouring frames often lie in the same object. */
struct placing {
    struct bfc_readable readable;
    struct bfc_object object;
    size_t index;
};

static struct bfc_who_frame frame_of(struct placing *last, uint64_t call) {
    if (call - last->object.start >= last->object.end - last->object.start) {
        bool found = bfc_object_at(&last->readable, call, &last->object);
        if (!found)
            last->object = (struct bfc_object){0};
        last->index = found ? index_of(&last->readable, &last->object) : OBJECTS;
    }
    if (last->index == OBJECTS)
        return (struct bfc_who_frame){.place = call};
    return (struct bfc_who_frame){.object = (uint32_t)last->index + 1,
                                  .place = call - bfc_sites.objects[last->index].start};
}

static void add_native_frames(const struct bfc_stack *stack) {
    struct placing placing = {.object = {0}};
    bfc_readable_begin(&placing.readable);
    look_for_unloaded(&placing.readable);
    for (size_t i = 0; i < stack->native; i++)
        bfc_sites.frames[bfc_sites.frame_count++] = frame_of(&placing, stack->calls[i]);
}

/* Returns the slot of the hash table that holds the stack's site, or the free slot where it
 * belongs. */
static uint32_t *slot_of(const struct bfc_stack *stack) {
    size_t slot = stack->hash % SLOTS;
    while (tables->slots[slot] && tables->hashes[tables->slots[slot]] != stack->hash)
        slot = (slot + 1) % SLOTS;
    return &tables->slots[slot];
}

uint32_t bfc_sites_find(const struct bfc_stack *stack) {
    uint32_t *slot = slot_of(stack);
    size_t count = stack->native + stack->python;
    if (*slot || count + stack->tag == 0 || bfc_sites.site_count == SITES ||
        count > FRAMES - bfc_sites.frame_count)
        return *slot;
    bfc_sites.sites[bfc_sites.site_count] = (struct bfc_who_site){.first = bfc_sites.frame_count,
                                                                  .native = (uint32_t)stack->native,
                                                                  .python = (uint32_t)stack->python,
                                                                  .tag = stack->tag};
    add_native_frames(stack);
    for (size_t i = 0; i < stack->python; i++)
        bfc_sites.frames[bfc_sites.frame_count++] = stack->frames[i];
    tables->hashes[bfc_sites.site_count] = stack->hash;
    *slot = (uint32_t)bfc_sites.site_count++;
    return *slot;
}

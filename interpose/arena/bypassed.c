/* Records of blocks that the driver allocated instead of a pool, by address. When a context ends,
 * its blocks no longer count against BFC_LIMIT. Their records are freed when the next record is
 * added. */
#include "interpose/arena/bypassed.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/numbers.h"
#include "base/sizes.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"

enum { BUCKETS = 1024 };

struct record {
    struct record *next;
    CUdeviceptr pointer;
    uint64_t bytes;
    struct bfc_arena *arena; /* the record holds a reference to this arena */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record *buckets[BUCKETS]; /* a hash table by address; guarded by `lock` */
/* the number of records; written under `lock`, but also read atomically without it */
static unsigned records;

/* Returns how many bytes of device memory the driver uses for a block. It puts several blocks of up
 * to 1 MiB into a page of 2 MiB, and gives a larger block pages of its own. */
static uint64_t bytes_taken(uint64_t bytes) {
    uint64_t unit = bytes <= MIB ? 512 : 2 * MIB;
    return bfc_add_saturating(bytes, unit - 1) / unit * unit;
}

static bool is_counted(const struct bfc_arena *arena) {
    return arena && arena->limit != UINT64_MAX;
}

bool bfc_bypassed_charge(struct bfc_arena *arena, uint64_t bytes, uint64_t *lacks) {
    *lacks = 0;
    if (!is_counted(arena) || bfc_device_charge(arena, bytes_taken(bytes)))
        return true;
    uint64_t wanted =
        bfc_add_saturating(bfc_load_relaxed(&arena->on->reserved), bytes_taken(bytes));
    *lacks = bfc_max(bfc_subtract_saturating(wanted, arena->limit), 1);
    return false;
}

static void forget_record(struct record **link) {
    struct record *record = *link;
    *link = record->next;
    bfc_store_relaxed(&records, records - 1);
    bfc_device_refund(record->arena, record->bytes);
    bfc_arena_drop(record->arena);
    free(record);
}

static struct record **bucket_of(CUdeviceptr pointer) {
    return &buckets[(pointer >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

static void forget_at(CUdeviceptr pointer) {
    struct record **link = bucket_of(pointer);
    while (*link && (*link)->pointer != pointer)
        link = &(*link)->next;
    if (*link)
        forget_record(link);
}

static void forget_ended(void) {
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct record **link = &buckets[i]; *link;)
            if (bfc_load_acquire(&(*link)->arena->ended))
                forget_record(link);
            else
                link = &(*link)->next;
}

static void add_record(struct bfc_arena *arena, CUdeviceptr pointer, uint64_t bytes) {
    struct record *record = malloc(sizeof *record), **bucket = bucket_of(pointer);
    if (!record) /* a block without a record counts against the limit until its context ends */
        return;
    bfc_arena_keep(arena);
    pthread_mutex_lock(&lock);
    forget_ended();
    /* an older record at this address is of a block that the program freed by a call without a
     * hook */
    forget_at(pointer);
    *record = (struct record){*bucket, pointer, bytes, arena};
    *bucket = record;
    bfc_store_relaxed(&records, records + 1);
    pthread_mutex_unlock(&lock);
}

void bfc_bypassed_note(struct bfc_arena *arena, CUdeviceptr pointer, uint64_t bytes) {
    if (!is_counted(arena))
        return;
    if (pointer)
        add_record(arena, pointer, bytes_taken(bytes));
    else
        bfc_device_refund(arena, bytes_taken(bytes));
}

void bfc_bypassed_freed(CUdeviceptr pointer) {
    if (!bfc_load_relaxed(&records))
        return;
    pthread_mutex_lock(&lock);
    forget_at(pointer);
    pthread_mutex_unlock(&lock);
}

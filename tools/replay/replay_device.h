/*
 * A simulated device, from which the pool of a replay takes memory. It hands out addresses in
 * rising order, has a limited memory, and completes the work on a freed block a fixed number of
 * calls after the free.
 *
 * A log of regions and blocks can be kept, from which files of events and pictures are made. Not
 * thread-safe.
 */
#ifndef BFC_REPLAY_DEVICE_H
#define BFC_REPLAY_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/pool.h"

enum log_op { LOG_RESERVE, LOG_RELEASE, LOG_ALLOCATE, LOG_FREE, LOG_FAIL };

struct log_entry {
    uint64_t address;
    uint64_t bytes; /* bytes that an allocation requested, or the size of a region */
    uint64_t size;  /* bytes that an allocation takes, padding included */
    uint32_t device;
    uint32_t call; /* index of the allocation or free in the input at which this happened */
    /* index of the allocation in the input; not valid in an entry about a region */
    uint32_t allocation;
    uint32_t region; /* number of the region on its device, from 1; 0: none */
    enum log_op op;
};

struct log {
    struct log_entry *list;
    size_t count, room;
    bool lost; /* whether entries are missing, because there was no memory for them */
};

struct device_region {
    bfc_addr start;
    uint64_t bytes;
};

/* The calls of the driver for virtual memory management, which pages need. How long they take is an
 * assumption (docs/internals/pages.md). */
enum device_op { OP_RESERVE, OP_CREATE, OP_MAP, OP_ALLOW, OP_UNMAP, OP_RELEASE, DEVICE_OPS };

struct device {
    uint32_t number;
    uint64_t capacity;         /* bytes of memory that the device has */
    uint64_t taken;            /* bytes of the device's memory that are taken now */
    bfc_addr next;             /* the address that is handed out next */
    uint64_t calls;            /* number of all calls of the device */
    uint64_t plain_calls;      /* number of calls that reserve or release whole regions */
    uint64_t made[DEVICE_OPS]; /* for each kind of call for pages: how many calls there were */
    /* for each kind of call for pages: how much memory the calls concerned, in units of 2 MiB */
    uint64_t touched[DEVICE_OPS];
    uint64_t pages; /* how many pages were ever created; a page is named by its number */
    /* index of the input's current allocation or free, which is the device's clock */
    uint32_t call;
    uint32_t lag;          /* for how many further calls the device still uses a freed block */
    uint64_t fences;       /* number of the last fence; fences are numbered from 1 */
    uint64_t waited;       /* the last fence for which the host has waited */
    uint32_t *recorded_at; /* for each fence, from 1: the value of `call` when it was recorded */
    struct device_region
        /* all regions, given back or not; the index is the region's number, which begins at 1;
         * later regions have higher addresses */
        *regions;
    uint32_t region_count, region_room;
    /* a variable of the caller's: how many bytes are taken from all devices together */
    uint64_t *reserved;
    uint64_t *peak;  /* a variable of the caller's: the most that `*reserved` ever was */
    struct log *log; /* gets an entry for each region and block; NULL: no log is kept */
};

/* Returns the functions by which a pool takes memory from this device (its upstream). With `paged`
 * the device also offers pages. */
struct bfc_upstream device_upstream(struct device *device, bool paged);

/* Returns how many microseconds the calls for pages so far have taken, by their assumed costs. */
double device_pages_us(const struct device *device);

/* Take a region from the device and give it back. The pool calls these as its upstream; the replay
 * calls them for allocations that bypass the pool. `ask` and `error` are not used and may be
 * NULL. */
enum bfc_reserve_result device_reserve(void *device, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask);
bool device_release(void *device, bfc_addr start, uint64_t bytes, int *error);

/* Records a fence, which is complete after device->lag more calls of the input, and returns its
 * number. */
bfc_fence device_fence(struct device *device);

/* Returns the number of the region in which the address lies. */
uint32_t device_region_of(const struct device *device, bfc_addr address);

void device_close(struct device *device);

void log_add(struct log *log, struct log_entry entry);
void log_free(struct log *log);

#endif

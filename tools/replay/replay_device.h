/*
 * The simulated device from which a replay's pool takes memory. It draws addresses from a counter,
 * has a capacity, and completes the work on a freed block some calls after the free.
 *
 * The log of what happened is the source of the events file and of pictures. Not thread-safe.
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
    uint32_t call; /* number of the call in the input, from 0 */
    /* number of the allocation in the input; without meaning in an entry about a region */
    uint32_t allocation;
    uint32_t region; /* number of the region, counted from 1; 0: there is none */
    enum log_op op;
};

struct log {
    struct log_entry *list;
    size_t count, room;
    bool lost; /* whether entries are missing, since the host had no memory */
};

struct device_region {
    bfc_addr start;
    uint64_t bytes;
};

/* The device's calls of virtual memory management. Their costs are assumptions
 * (docs/internals/pages.md). */
enum device_op { OP_RESERVE, OP_CREATE, OP_MAP, OP_ALLOW, OP_UNMAP, OP_RELEASE, DEVICE_OPS };

struct device {
    uint32_t number;
    uint64_t capacity;            /* bytes */
    uint64_t taken;               /* bytes */
    bfc_addr next;                /* the next address to hand out */
    uint64_t calls;               /* calls of the device */
    uint64_t plain_calls;         /* calls for whole regions */
    uint64_t made[DEVICE_OPS];    /* by kind of call: how many calls there were for pages */
    uint64_t touched[DEVICE_OPS]; /* by kind of call: how many pages of 2 MiB the calls concerned */
    uint64_t pages;  /* number of pages that were ever created; a page is known by its number */
    uint32_t call;   /* number of the input's call, which is the device's clock */
    uint32_t lag;    /* calls after a free until the work on its block is complete */
    uint64_t fences; /* number of the last fence that was recorded */
    uint64_t waited; /* the highest fence for which the host has waited */
    uint32_t *recorded_at; /* by fence, from 1: the call that recorded it */
    struct device_region
        *regions; /* all regions there ever were, by number, from 1; addresses rise */
    uint32_t region_count, region_room;
    uint64_t *reserved; /* bytes that are taken from all devices together; the caller's variable */
    uint64_t *peak;     /* the most that `reserved` ever was; the caller's variable */
    struct log *log;    /* NULL: regions and blocks are not logged */
};

/* Returns the upstream by which a pool takes memory from this device; with `paged` it offers
 * pages. */
struct bfc_upstream device_upstream(struct device *device, bool paged);

/* Returns how many microseconds the device's calls for pages took, by the assumed costs. */
double device_pages_us(const struct device *device);

/* Reserve and release a region, for the upstream and for allocations that bypass the pool. `ask`
 * and `error` may be NULL. */
enum bfc_reserve_result device_reserve(void *device, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask);
bool device_release(void *device, bfc_addr start, uint64_t bytes, int *error);

/* Records a new fence, which is complete `lag` calls from now. */
bfc_fence device_fence(struct device *device);

/* Returns the number of the region that holds an address. */
uint32_t device_region_of(const struct device *device, bfc_addr address);

void device_close(struct device *device);

void log_add(struct log *log, struct log_entry entry);
void log_free(struct log *log);

#endif

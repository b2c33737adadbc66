/*
 * The device that a replay's pool grows from: addresses from a counter, a capacity, and work that
 * is complete some calls after the free that it was under way at.
 *
 * It also keeps the log of what happened, from which the events file and the picture come. Not
 * thread-safe: a replay has one thread.
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
    uint64_t bytes; /* as asked for; of regions, as taken */
    uint64_t size;  /* of blocks that are allocated: as taken */
    uint32_t device;
    uint32_t call;       /* of the input, counted from 0 */
    uint32_t allocation; /* its number in the input; not of regions */
    uint32_t region;     /* from 1; 0: none */
    enum log_op op;
};

struct log {
    struct log_entry *list;
    size_t count, room;
    bool lost; /* the host's memory did not suffice */
};

struct device_region {
    bfc_addr start;
    uint64_t bytes;
};

/* The calls of the device where addresses and memory are apart; what they are taken to cost is
 * assumed (docs/internals/pages.md). */
enum device_op { OP_RESERVE, OP_CREATE, OP_MAP, OP_ALLOW, OP_UNMAP, OP_RELEASE, DEVICE_OPS };

struct device {
    uint32_t number;
    uint64_t capacity; /* bytes */
    uint64_t taken;
    bfc_addr next;
    uint64_t calls;               /* made to the device */
    uint64_t plain_calls;         /* of them, those for whole regions */
    uint64_t made[DEVICE_OPS];    /* of them, those for pages by kind, and... */
    uint64_t touched[DEVICE_OPS]; /* ...the pages of 2 MiB that these were about */
    uint64_t pages;               /* ever created: their names */
    uint32_t call;                /* of the input: the device's clock */
    uint32_t lag;                 /* calls until freed memory's work is complete */
    uint64_t fences;              /* drawn so far */
    uint64_t waited;              /* all fences up to it are complete since the host waited */
    uint32_t
        *drawn_at; /* by fence, from 1: the call under which it was drawn; room for all frees */
    struct device_region *regions; /* all that ever were, by number, from 1; addresses rise */
    uint32_t region_count, region_room;
    uint64_t *reserved; /* of all devices together, and */
    uint64_t *peak;     /* its highest: both the caller's */
    struct log *log;    /* or NULL */
};

/* The upstream of a pool over this device; `paged`: with addresses and memory apart. */
struct bfc_upstream device_upstream(struct device *device, bool paged);

/* What the calls of struct bfc_page_calls took, by the model. */
double device_pages_us(const struct device *device);

/* What the upstream's functions are, for requests that pass the pool by. */
enum bfc_reserve_result device_reserve(void *device, uint64_t bytes, bfc_addr *start);
bool device_release(void *device, bfc_addr start, uint64_t bytes);

/* A new fence, complete `lag` calls from now. */
bfc_fence device_fence(struct device *device);

/* The number of the region that holds an address. */
uint32_t device_region_of(const struct device *device, bfc_addr address);

void device_close(struct device *device);

void log_add(struct log *log, struct log_entry entry);
void log_free(struct log *log);

#endif

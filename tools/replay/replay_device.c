#include "tools/replay/replay_device.h"

#include <stdlib.h>

#include "base/numbers.h"
#include "pool/pages.h"

#define FIRST_ADDRESS UINT64_C(0x7f0000000000)
#define PAGE (UINT64_C(2) << 20) /* the alignment of the driver's large allocations */

void log_free(struct log *log) {
    free(log->list);
    *log = (struct log){0};
}

void log_add(struct log *log, struct log_entry entry) {
    if (!log)
        return;
    if (log->count == log->room) {
        size_t room = log->room ? log->room * 2 : 4096;
        struct log_entry *list = realloc(log->list, room * sizeof *list);
        if (!list) {
            log->lost = true;
            return;
        }
        log->list = list;
        log->room = room;
    }
    log->list[log->count++] = entry;
}

static bool note_region(struct device *device, bfc_addr start, uint64_t bytes) {
    if (device->region_count + 1 >= device->region_room) {
        uint32_t room = device->region_room ? device->region_room * 2 : 256;
        struct device_region *regions = realloc(device->regions, room * sizeof *regions);
        if (!regions)
            return false;
        device->regions = regions;
        device->region_room = room;
    }
    device->regions[++device->region_count] = (struct device_region){start, bytes};
    return true;
}

static void take_bytes(struct device *device, uint64_t bytes) {
    device->taken += bytes;
    *device->reserved += bytes;
    *device->peak = bfc_max(*device->peak, *device->reserved);
}

static void count_plain(struct device *device) {
    device->calls++;
    device->plain_calls++;
}

enum bfc_reserve_result device_reserve(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask) {
    (void)ask;
    struct device *device = context;
    count_plain(device);
    if (bytes > device->capacity - device->taken)
        return BFC_REFUSED;
    if (!device->next)
        device->next = FIRST_ADDRESS;
    if (!note_region(device, device->next, bytes))
        return BFC_FAILED;
    *start = device->next;
    device->next += (bytes + PAGE - 1) / PAGE * PAGE;
    take_bytes(device, bytes);
    log_add(device->log, (struct log_entry){.op = LOG_RESERVE,
                                            .address = *start,
                                            .bytes = bytes,
                                            .device = device->number,
                                            .call = device->call,
                                            .region = device->region_count});
    return BFC_RESERVED;
}

bool device_release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)error;
    struct device *device = context;
    count_plain(device);
    device->taken -= bytes;
    *device->reserved -= bytes;
    log_add(device->log, (struct log_entry){.op = LOG_RELEASE,
                                            .address = start,
                                            .bytes = bytes,
                                            .device = device->number,
                                            .call = device->call,
                                            .region = device_region_of(device, start)});
    return true;
}

/* Returns the last fence that is complete. A binary search finds it, because fences are recorded in
 * the order of calls. */
static bfc_fence poll_fences(void *context) {
    const struct device *device = context;
    uint64_t low = device->waited, high = device->fences;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if ((uint64_t)device->recorded_at[middle] + device->lag <= device->call)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static bfc_fence wait_for_fence(void *context, bfc_fence fence, uint64_t timeout_ns) {
    struct device *device = context;
    (void)timeout_ns;
    device->waited = bfc_max(device->waited, fence);
    return poll_fences(device);
}

bfc_fence device_fence(struct device *device) {
    device->recorded_at[++device->fences] = device->call;
    return device->fences;
}

uint32_t device_region_of(const struct device *device, bfc_addr address) {
    uint32_t low = 1, high = device->region_count;
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (device->regions[middle].start <= address)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* How many bytes of addresses a pool with pages reserves at once: more than any device has
 * memory. */
#define ADDRESSES (UINT64_C(1) << 40)

/* How long the device's calls for pages are assumed to take, in microseconds: `call` for each call,
 * plus `page` for each 2 MiB of memory that the call concerns. */
static const struct {
    double call, page;
} costs[DEVICE_OPS] = {
    [OP_RESERVE] = {2, 0},  [OP_CREATE] = {25, 4}, [OP_MAP] = {2, 0},
    [OP_ALLOW] = {35, 1.5}, [OP_UNMAP] = {30, 1},  [OP_RELEASE] = {20, 1},
};

static void count_call(struct device *device, enum device_op op, uint64_t bytes) {
    device->calls++;
    device->made[op]++;
    device->touched[op] += bytes / PAGE;
}

static enum bfc_reserve_result reserve_addresses(void *context, uint64_t bytes, bfc_addr *start) {
    struct device *device = context;
    count_call(device, OP_RESERVE, 0);
    *start = device->next ? device->next : FIRST_ADDRESS;
    device->next = *start + bytes + PAGE;
    return BFC_RESERVED;
}

static void unreserve_addresses(void *context, bfc_addr start, uint64_t bytes) {
    (void)start;
    (void)bytes;
    count_call(context, OP_RESERVE, 0);
}

static enum bfc_reserve_result create_page(void *context, uint64_t bytes, bfc_page *page,
                                           struct bfc_ask *ask) {
    (void)ask;
    struct device *device = context;
    count_call(device, OP_CREATE, bytes);
    if (bytes > device->capacity - device->taken)
        return BFC_REFUSED;
    *page = ++device->pages;
    take_bytes(device, bytes);
    return BFC_RESERVED;
}

static void release_page(void *context, bfc_page page, uint64_t bytes) {
    struct device *device = context;
    (void)page;
    count_call(device, OP_RELEASE, bytes);
    device->taken -= bytes;
    *device->reserved -= bytes;
}

static bool map_page(void *context, bfc_addr start, uint64_t bytes, bfc_page page) {
    (void)start;
    (void)page;
    count_call(context, OP_MAP, bytes);
    return true;
}

static bool unmap_pages(void *context, bfc_addr start, uint64_t bytes) {
    (void)start;
    count_call(context, OP_UNMAP, bytes);
    return true;
}

static bool allow_pages(void *context, bfc_addr start, uint64_t bytes) {
    (void)start;
    count_call(context, OP_ALLOW, bytes);
    return true;
}

static const struct bfc_page_calls page_calls = {.granule = PAGE,
                                                 .addresses = ADDRESSES,
                                                 .reserve = reserve_addresses,
                                                 .unreserve = unreserve_addresses,
                                                 .create = create_page,
                                                 .release = release_page,
                                                 .map = map_page,
                                                 .unmap = unmap_pages,
                                                 .allow = allow_pages};

double device_pages_us(const struct device *device) {
    double us = 0;
    for (int op = 0; op < DEVICE_OPS; op++)
        us += costs[op].call * (double)device->made[op] +
              costs[op].page * (double)device->touched[op];
    return us;
}

struct bfc_upstream device_upstream(struct device *device, bool paged) {
    return (struct bfc_upstream){.context = device,
                                 .reserve = device_reserve,
                                 .release = device_release,
                                 .poll = poll_fences,
                                 .wait = wait_for_fence,
                                 .pages = paged ? &page_calls : NULL};
}

void device_close(struct device *device) {
    free(device->recorded_at);
    free(device->regions);
    *device = (struct device){0};
}

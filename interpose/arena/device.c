/*
 * Devices: how many bytes all pools of the process have reserved on each, against BFC_LIMIT.
 *
 * The records are in a list that only grows: a process has few devices, and pointers to records
 * stay valid.
 */
#include "interpose/arena/device.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct bfc_device *bfc_device_find(CUdevice ordinal) {
    static struct bfc_device *devices; /* the list of records; guarded by `lock` */
    pthread_mutex_lock(&lock);
    struct bfc_device *device = devices;
    while (device && device->ordinal != ordinal)
        device = device->next;
    if (!device && (device = calloc(1, sizeof *device))) {
        device->ordinal = ordinal;
        device->next = devices;
        devices = device;
    }
    pthread_mutex_unlock(&lock);
    return device;
}

bool bfc_device_charge(struct bfc_arena *arena, uint64_t bytes) {
    uint64_t *reserved = &arena->on->reserved;
    uint64_t before = bfc_load_relaxed(reserved);
    do
        if (bytes > arena->limit || before > arena->limit - bytes)
            return false;
    while (!bfc_compare_exchange_relaxed(reserved, &before, before + bytes));
    bfc_fetch_add_relaxed(&arena->reserved, bytes);
    return true;
}

uint64_t bfc_device_leave(struct bfc_arena *arena, uint64_t bytes) {
    uint64_t before = bfc_load_relaxed(&arena->reserved), taken;
    do
        taken = bytes < before ? bytes : before;
    while (!bfc_compare_exchange_relaxed(&arena->reserved, &before, before - taken));
    return taken;
}

/* When an arena ends, all that it has reserved is subtracted. If a free of one of its regions is
 * still under way then, that free must not subtract the region's bytes once more. */
void bfc_device_refund(struct bfc_arena *arena, uint64_t bytes) {
    uint64_t taken = bfc_device_leave(arena, bytes);
    if (taken)
        bfc_fetch_sub_relaxed(&arena->on->reserved, taken);
}

/* Devices: a list that grows only. */
#include "interpose/arena/device.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct bfc_device *bfc_device_find(CUdevice ordinal) {
    static struct bfc_device *devices; /* guarded by the lock; grows only */
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

/* ---- BFC_LIMIT ---- */

bool bfc_device_charge(struct bfc_arena *arena, uint64_t bytes) {
    uint64_t *reserved = &arena->on->reserved;
    uint64_t before = __atomic_load_n(reserved, __ATOMIC_RELAXED);
    do
        if (bytes > arena->limit || before > arena->limit - bytes)
            return false;
    while (!__atomic_compare_exchange_n(reserved, &before, before + bytes, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    __atomic_fetch_add(&arena->reserved, bytes, __ATOMIC_RELAXED);
    return true;
}

/* What an ended arena had was given back at once: what comes later is part of that. */
void bfc_device_refund(struct bfc_arena *arena, uint64_t bytes) {
    uint64_t before = __atomic_load_n(&arena->reserved, __ATOMIC_RELAXED), taken;
    do
        taken = bytes < before ? bytes : before;
    while (!__atomic_compare_exchange_n(&arena->reserved, &before, before - taken, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (taken)
        __atomic_fetch_sub(&arena->on->reserved, taken, __ATOMIC_RELAXED);
}

/*
 * What bfcstat knows of the machine's devices, and how it writes their PCI addresses and UUIDs.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_GPU_H
#define BFC_TOOLS_BFCSTAT_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/segment.h"

/* A device, or a part of one (MIG), and who uses its memory. Amounts are in bytes. */
struct gpu {
    char bus_id[24]; /* PCI address, as gpu_bus_id writes it; empty: not known */
    uint8_t uuid[16];
    char name[64];
    int number; /* the number that nvidia-smi gives the device; -1: not known */
    uint64_t total;
    bool used_known;
    uint64_t used; /* bytes that all processes together use; valid if `used_known` */
    /* bytes in use, and cached, in the pools of the jobs whose shared-memory segments were read */
    uint64_t in_use, cached;
    /* When a job asked the driver for `used`, in ns by CLOCK_REALTIME; all ones: the value is from
     * the management library, which was asked just now. */
    uint64_t asked_ns;
};

/* Returns the bytes that are used, but not in the pools of jobs whose shared-memory segments were
 * read: by other users' jobs, by processes without bfcpreload, and by contexts, code and whatever
 * else does not come from pools. gpu_free returns the bytes that nobody uses. */
uint64_t gpu_others(const struct gpu *gpu);
uint64_t gpu_free(const struct gpu *gpu);

/* Writes a PCI address in one form, "0000:3B:00.0"; `foreign` is the address in any case of letters
 * and with any number of leading zeros. Writes "" if it is no PCI address. */
char *gpu_bus_id(const char *foreign, char *text, size_t size);

/* Writes a PCI address without its domain if that is 0, as "3B:00.0"; GPU_SHORT_TEXT bytes
 * suffice. */
#define GPU_SHORT_TEXT 24u
char *gpu_short_bus_id(const char *bus_id, char *text, size_t size);

/* gpu_uuid writes a UUID as nvidia-smi does, "GPU-00010203-0405-..."; GPU_UUID_TEXT bytes suffice.
 * gpu_short_uuid writes its first 8 digits. */
#define GPU_UUID_TEXT 48u
char *gpu_uuid(const uint8_t uuid[16], char *text, size_t size);
char *gpu_short_uuid(const uint8_t uuid[16], char *text, size_t size);

/* Write how tables name the device of a pool. pool_bus_id: the short PCI address; if that is not
 * known, the number that the device has in the job. pool_uuid: the short UUID, or "host" for a pool
 * of host memory. */
char *pool_bus_id(const struct bfc_segment_pool *pool, char *text, size_t size);
char *pool_uuid(const struct bfc_segment_pool *pool, char *text, size_t size);

#endif

/*
 * The machine's devices as findings have them, and their names.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_GPU_H
#define BFC_TOOLS_BFCSTAT_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/segment.h"

/* A device, or a part of one (MIG), and what of its memory is used by whom, in bytes. */
struct gpu {
    char bus_id[24]; /* as gpu_bus_id writes it; empty: not known */
    uint8_t uuid[16];
    char name[64];
    int number; /* the number that nvidia-smi gives the device; -1: not known */
    uint64_t total;
    bool used_known;
    uint64_t used;           /* bytes that are used by everyone together */
    uint64_t in_use, cached; /* bytes of the pools of the jobs that were found */
    /* when a job asked the driver for `used` (CLOCK_REALTIME); all ones: the management library
     * told it just now */
    uint64_t asked_ns;
};

/* Returns the bytes that are used outside the pools of the jobs that were found: by other users'
 * jobs, by processes without the library, and by contexts, code and whatever else is not
 * allocated from the pools. */
uint64_t gpu_others(const struct gpu *gpu);
uint64_t gpu_free(const struct gpu *gpu);

/* Writes a PCI address as "0000:3B:00.0", whatever its case and the number of its zeros; nothing if
 * it is none. */
char *gpu_bus_id(const char *foreign, char *text, size_t size);

/* Writes the PCI address in short: "3B:00.0" where the domain is 0. */
#define GPU_SHORT_TEXT 24u
char *gpu_short_bus_id(const char *bus_id, char *text, size_t size);

/* Writes a UUID as nvidia-smi does ("GPU-00010203-0405-..."), or the first 8 of its digits. */
#define GPU_UUID_TEXT 48u
char *gpu_uuid(const uint8_t uuid[16], char *text, size_t size);
char *gpu_short_uuid(const uint8_t uuid[16], char *text, size_t size);

/* Names of the device of a pool for a table: the short PCI address, or the number that the process
 * gives the device if the address is not known; the short UUID, or "host" if the pool's memory is
 * the host's. */
char *pool_bus_id(const struct bfc_segment_pool *pool, char *text, size_t size);
char *pool_uuid(const struct bfc_segment_pool *pool, char *text, size_t size);

#endif

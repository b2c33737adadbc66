/* Devices: how many bytes all pools of the process have reserved on each, and whether that stays
 * within BFC_LIMIT. Thread-safe. */
#ifndef BFC_INTERPOSE_DEVICE_H
#define BFC_INTERPOSE_DEVICE_H

#include "interpose/arena/state.h"

/* A device number under which host memory is counted, as if it were a device's memory. */
#define BFC_DEVICE_HOST CU_DEVICE_CPU

/* Returns the process's record of a device, which is made if there is none; NULL: the host has no
 * memory. */
struct bfc_device *bfc_device_find(CUdevice ordinal);

/* Counts bytes that a pool is about to reserve. False: the limit would be exceeded, and nothing is
 * counted. */
bool bfc_device_charge(struct bfc_arena *arena, uint64_t bytes);

/* Subtracts `bytes` from the reserved bytes of the arena and of the device; if that is more than
 * the arena has reserved, subtracts what it has. */
void bfc_device_refund(struct bfc_arena *arena, uint64_t bytes);

/* As bfc_device_refund, but subtracts from the reserved bytes of the arena alone. Returns how many
 * bytes were subtracted. */
uint64_t bfc_device_leave(struct bfc_arena *arena, uint64_t bytes);

#endif

/* Devices: what all pools on one have reserved, and BFC_LIMIT. Thread-safe. */
#ifndef BFC_INTERPOSE_DEVICE_H
#define BFC_INTERPOSE_DEVICE_H

#include "interpose/arena/state.h"

/* Host memory is counted as the memory of a device with this ordinal. */
#define BFC_DEVICE_HOST CU_DEVICE_CPU

/* The process's record of a device, made now if it is new; NULL: the host has no memory. */
struct bfc_device *bfc_device_find(CUdevice ordinal);

/* Counts bytes that are about to be reserved. False: they would exceed the limit. */
bool bfc_device_charge(struct bfc_arena *arena, uint64_t bytes);

/* Takes `bytes`, at most the arena's whole share, back from what is reserved on the device. */
void bfc_device_refund(struct bfc_arena *arena, uint64_t bytes);

/* Takes `bytes`, at most all, out of the arena's share; they stay reserved on the device. Returns
 * how many were taken. */
uint64_t bfc_device_leave(struct bfc_arena *arena, uint64_t bytes);

#endif

// What other processes use of a device; nothing without SIM_SHARE. Guarded by the lock.
#ifndef SIM_SHARE_H
#define SIM_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_device;

// A device's UUID, 16 bytes: the same in all processes that share it, and in no others.
void sim_share_uuid(int place, unsigned char *uuid);

// `take` says whether that many pages more are there, and notes them; `give` comes before they are
// given back.
bool sim_share_open(const char *path);
size_t sim_share_others(const struct sim_device *device);
bool sim_share_take(const struct sim_device *device, size_t pages);
void sim_share_give(const struct sim_device *device, size_t pages);

#endif

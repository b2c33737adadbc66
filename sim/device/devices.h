// The devices. Guarded by the lock.
#ifndef SIM_DEVICES_H
#define SIM_DEVICES_H

#include "sim/base/limits.h"
#include "sim/device/device.h"

extern struct sim_device sim_devices[SIM_MAX_DEVICES];
struct sim_device *sim_device_of(CUdevice ordinal); // NULL: none
struct sim_device *sim_device_in(int place);        // NULL: the process does not see it
struct sim_device *sim_device_at(uintptr_t address);
CUresult sim_devices_open(void);

#endif

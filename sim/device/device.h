// A device as a record. Guarded by the lock.
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "sim/device/context.h"

struct sim_device {
    CUdevice ordinal;
    int place;        // its number in the machine, of which the process may see a part
    uintptr_t base;   // of the window of addresses that programs see; never accessible to the host
    char *shadow;     // where the bytes really are
    size_t pages;     // in the window
    size_t limit;     // pages of memory that the device has
    size_t used;      // of those
    int file;         // behind the shadow
    uintptr_t *owner; // of each page in the window: an allocation, a slab, or 0
    size_t hint;      // no free page lies before it
    struct CUctx_st primary;
};

#endif

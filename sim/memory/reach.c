// Where the bytes of an address really are. Guarded by the lock.
#include "sim/memory/reach.h"

#include "sim/device/devices.h"
#include "sim/device/pages.h"
#include "sim/memory/window.h"

char *sim_reach(uintptr_t address, size_t bytes) {
    const struct sim_device *device = sim_device_at(address);
    if (device == NULL) {
        return sim_virtual_at(address) ? sim_virtual_reach(address, bytes)
                                       : (char *)address; // the host's
    }
    return sim_pages_taken(device, address, bytes) ? device->shadow + (address - device->base)
                                                   : NULL;
}

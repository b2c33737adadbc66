// A device's pages: which are taken, and by what.
//
// First fit over the window by pages of 2 MiB, the lowest address first (so that a freed address is
// soon given out again, which is what stale pointers must survive). O(pages) at worst; the search
// starts at the lowest page that may be free. Guarded by the lock.
#include "sim/device/pages.h"

#include "sim/base/limits.h"
#include "sim/device/device.h"
#include "sim/device/share.h"

#include <fcntl.h>
#include <string.h>

bool sim_pages_charge(struct sim_device *device, size_t pages) {
    if (pages == 0 || pages > device->limit - device->used || !sim_share_take(device, pages)) {
        return false;
    }
    device->used += pages;
    return true;
}

void sim_pages_refund(struct sim_device *device, size_t pages) {
    sim_share_give(device, pages);
    device->used -= pages;
}

uintptr_t sim_pages_take(struct sim_device *device, size_t pages, uintptr_t owner) {
    if (!sim_pages_charge(device, pages)) {
        return 0;
    }
    size_t run = 0;
    while (device->hint < device->pages && device->owner[device->hint] != 0) {
        device->hint++;
    }
    for (size_t page = device->hint; page < device->pages; page++) {
        run = device->owner[page] == 0 ? run + 1 : 0;
        if (run < pages) {
            continue;
        }
        size_t first = page + 1 - pages;
        for (size_t i = first; i <= page; i++) {
            device->owner[i] = owner;
        }
        return device->base + first * SIM_PAGE;
    }
    sim_pages_refund(device, pages); // there was memory, but no run of addresses
    return 0;
}

// The bytes go too: the next owner finds zeros, a late reader as well.
void sim_pages_give(struct sim_device *device, uintptr_t start, size_t pages) {
    size_t first = (start - device->base) / SIM_PAGE;
    memset(&device->owner[first], 0, pages * sizeof *device->owner);
    fallocate(device->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(first * SIM_PAGE),
              (off_t)(pages * SIM_PAGE));
    sim_pages_refund(device, pages);
    if (first < device->hint) {
        device->hint = first;
    }
}

bool sim_pages_taken(const struct sim_device *device, uintptr_t address, size_t bytes) {
    size_t offset = address - device->base;
    size_t last = (offset + (bytes > 0 ? bytes - 1 : 0)) / SIM_PAGE;
    for (size_t page = offset / SIM_PAGE; page <= last; page++) {
        if (page >= device->pages || device->owner[page] == 0) {
            return false;
        }
    }
    return true;
}

// Devices, and the two windows of addresses that each has. Guarded by the lock.
//
// A device's bytes lie in an unlinked memory file, sparse, mapped once for stream work (the
// shadow). Programs see another window of the same length that nobody may touch, so a host access
// to a device pointer faults as it does with a real device. Only pages that work touched cost
// memory.
#include "sim/device/devices.h"

#include "sim/base/limits.h"
#include "sim/base/options.h"
#include "sim/device/share.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t MOST_WINDOW = ((size_t)1 << 40) / SIM_PAGE;
static const uintptr_t LOW_ADDRESS = (uintptr_t)1 << 31;

struct sim_device sim_devices[SIM_MAX_DEVICES];

struct sim_device *sim_device_in(int place) {
    int i = 0;
    while (i < sim_options.devices && sim_options.place[i] != place) {
        i++;
    }
    return sim_device_of(i);
}

struct sim_device *sim_device_of(CUdevice ordinal) {
    return ordinal >= 0 && ordinal < sim_options.devices ? &sim_devices[ordinal] : NULL;
}

struct sim_device *sim_device_at(uintptr_t address) {
    for (int i = 0; i < sim_options.devices; i++) {
        struct sim_device *device = &sim_devices[i];
        if (address >= device->base && address - device->base < device->pages * SIM_PAGE) {
            return device;
        }
    }
    return NULL;
}

static void *reserve(void *place, size_t bytes, int flags) {
    flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    return mmap(place, bytes, PROT_NONE, flags, -1, 0);
}

// Where 32-bit pointers reach, behind the heap of a program that is linked to low addresses.
static uintptr_t map_low_window(size_t bytes) {
    void *wanted = (void *)LOW_ADDRESS;
    void *start = reserve(wanted, bytes, MAP_FIXED_NOREPLACE);
    if (start == wanted) {
        return LOW_ADDRESS;
    }
    if (start != MAP_FAILED) { // by a kernel that does not know the flag
        munmap(start, bytes);
    }
    sim_complain("SIM_LOW", "1", "possible here: the addresses are taken");
    return 0;
}

static uintptr_t map_window(size_t bytes) {
    char *start = reserve(NULL, bytes + SIM_PAGE, 0);
    if (start == MAP_FAILED) {
        return 0;
    }
    return ((uintptr_t)start + SIM_PAGE - 1) & ~(uintptr_t)(SIM_PAGE - 1);
}

static uintptr_t open_window(const struct sim_device *device, size_t bytes) {
    uintptr_t low = sim_options.low && device->ordinal == 0 ? map_low_window(bytes) : 0;
    return low != 0 ? low : map_window(bytes);
}

// So many more addresses than memory that what is free is not refused for want of a run of them, as
// on a real device.
static size_t pages_of_window(size_t limit) {
    size_t pages = limit * 16 < MOST_WINDOW ? limit * 16 : MOST_WINDOW;
    return pages > limit + limit / 2 ? pages : limit + limit / 2;
}

static bool open_windows(struct sim_device *device) {
    device->limit = sim_options.memory / SIM_PAGE;
    device->pages = pages_of_window(device->limit);
    size_t bytes = device->pages * SIM_PAGE;
    device->file = memfd_create("sim-device", MFD_CLOEXEC);
    device->owner = mmap(NULL, device->pages * sizeof *device->owner, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (device->file < 0 || device->owner == MAP_FAILED ||
        ftruncate(device->file, (off_t)bytes) != 0) {
        return false;
    }
    device->shadow =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, device->file, 0);
    device->base = open_window(device, bytes);
    return device->shadow != MAP_FAILED && device->base != 0;
}

CUresult sim_devices_open(void) {
    if (!sim_share_open(sim_options.share)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (int i = 0; i < sim_options.devices; i++) {
        struct sim_device *device = &sim_devices[i];
        device->ordinal = i;
        device->place = sim_options.place[i];
        device->primary.primary = true;
        device->primary.device = device;
        device->primary.version = 3020;
        if (!open_windows(device)) {
            fprintf(stderr, "sim: cannot reserve device %d: %s\n", i, strerror(errno));
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return sim_options.devices == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

// One device's memory for several processes: SIM_SHARE names a file in which each process keeps
// what it uses. A process that died is known by its pid, and its share is free again.
//
// Changes are made under the file's lock, so that two processes never take the same last page.
// Guarded by the lock.
#include "sim/device/share.h"

#include "sim/base/limits.h"
#include "sim/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 256 };

struct slot {
    int64_t pid; // 0: free
    uint64_t pages[SIM_MAX_DEVICES];
};

static struct slot *slots, *own;
static int file = -1;

static bool dead(const struct slot *slot) {
    return slot->pid == 0 || (kill((pid_t)slot->pid, 0) != 0 && errno == ESRCH);
}

static struct slot *take_slot(void) {
    for (size_t i = 0; i < SLOTS; i++) {
        if (dead(&slots[i])) {
            slots[i] = (struct slot){.pid = getpid()};
            return &slots[i];
        }
    }
    return NULL;
}

// FNV-1a.
static uint64_t hash_of(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return hash;
}

static uint64_t number; // of the file that is shared; 0: none is

void sim_share_uuid(int place, unsigned char *uuid) {
    memcpy(uuid, "simulated-gpu-0", 16);
    uuid[14] = (unsigned char)('0' + place);
    uuid[0] ^= (unsigned char)place; // the first digits alone tell real devices apart
    for (size_t i = 0; i < sizeof number; i++) {
        uuid[i] ^= (unsigned char)(number >> 8 * i);
    }
}

bool sim_share_open(const char *path) {
    if (path == NULL || own != NULL) {
        return true;
    }
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, SLOTS * sizeof *slots) != 0) {
        fprintf(stderr, "sim: SIM_SHARE=%s: %s\n", path, strerror(errno));
        return false;
    }
    slots = mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (slots == MAP_FAILED) {
        return false;
    }
    number = hash_of(path);
    flock(file, LOCK_EX);
    own = take_slot();
    flock(file, LOCK_UN);
    return own != NULL;
}

static size_t used_by_others(int device) {
    size_t pages = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        if (&slots[i] != own && slots[i].pages[device] != 0 && !dead(&slots[i])) {
            pages += slots[i].pages[device];
        }
    }
    return pages;
}

size_t sim_share_others(const struct sim_device *device) {
    return own == NULL ? 0 : used_by_others(device->place);
}

bool sim_share_take(const struct sim_device *device, size_t pages) {
    if (own == NULL) {
        return true;
    }
    flock(file, LOCK_EX);
    size_t others = used_by_others(device->place);
    bool fits =
        others + device->used <= device->limit && pages <= device->limit - device->used - others;
    if (fits) {
        own->pages[device->place] = device->used + pages;
    }
    flock(file, LOCK_UN);
    return fits;
}

void sim_share_give(const struct sim_device *device, size_t pages) {
    if (own != NULL) {
        own->pages[device->place] = device->used - pages;
    }
}

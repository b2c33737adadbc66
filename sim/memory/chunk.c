// Memory apart from addresses: what cuMemCreate makes.
//
// The bytes of a device's chunks lie in one sparse memory file, each chunk at an offset of its own
// that is never used again, so chunks need no run of free pages. Guarded by the lock.
#include "sim/memory/chunk.h"

#include "sim/base/ids.h"
#include "sim/base/limits.h"
#include "sim/device/device.h"
#include "sim/device/pages.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// A file with the bytes of chunks.
struct sim_store {
    int file;
    off_t end;
};

static struct sim_store own[SIM_MAX_DEVICES];

static bool place(struct sim_chunk *chunk) {
    struct sim_store *store = &own[chunk->device->ordinal];
    if (store->end == 0) {
        store->file = memfd_create("sim-chunks", MFD_CLOEXEC);
    }
    off_t end = store->end + (off_t)chunk->size;
    if (store->file < 0 || ftruncate(store->file, end) != 0) {
        return false;
    }
    chunk->store = store;
    chunk->offset = store->end;
    store->end = end;
    return true;
}

struct sim_chunk *sim_chunk_new(struct sim_device *device, size_t size,
                                const CUmemAllocationProp *properties) {
    if (!sim_pages_charge(device, size / SIM_PAGE)) {
        return NULL;
    }
    struct sim_chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk != NULL) {
        *chunk = (struct sim_chunk){.device = device, .properties = *properties, .size = size};
    }
    if (chunk == NULL || !place(chunk)) {
        sim_pages_refund(device, size / SIM_PAGE);
        free(chunk);
        return NULL;
    }
    chunk->id = sim_next_buffer_id();
    return chunk;
}

int sim_chunk_file(const struct sim_chunk *chunk) {
    return chunk->store->file;
}

void sim_chunk_settle(struct sim_chunk *chunk) {
    if (chunk->handles > 0 || chunk->mappings > 0) {
        return;
    }
    fallocate(chunk->store->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, chunk->offset,
              (off_t)chunk->size);
    sim_pages_refund(chunk->device, chunk->size / SIM_PAGE);
    free(chunk);
}

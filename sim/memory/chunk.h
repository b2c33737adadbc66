// Memory apart from addresses (cuMemCreate): a chunk is what one handle stands for. Guarded by the
// lock.
#ifndef SIM_CHUNK_RECORD_H
#define SIM_CHUNK_RECORD_H

#include <cuda.h>
#include <stddef.h>
#include <sys/types.h>

struct sim_device;
struct sim_store;

struct sim_chunk {
    struct sim_device *device;
    CUmemAllocationProp properties;
    struct sim_store *store;
    off_t offset; // of its bytes in the store's file
    size_t size;
    unsigned handles, mappings;
    unsigned long long id; // of the memory, however often it is mapped
};

// No handle and no mapping yet. NULL: no memory.
struct sim_chunk *sim_chunk_new(struct sim_device *device, size_t size,
                                const CUmemAllocationProp *properties);
int sim_chunk_file(const struct sim_chunk *chunk);
// To be called after a handle or a mapping went: ends a chunk that has none left.
void sim_chunk_settle(struct sim_chunk *chunk);

#endif

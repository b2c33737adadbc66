// Memory apart from addresses (cuMemCreate): a chunk is what one handle stands for. Guarded by the
// lock.
#ifndef SIM_CHUNK_RECORD_H
#define SIM_CHUNK_RECORD_H

#include <cuda.h>
#include <stdbool.h>
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
    unsigned long long id;                 // of the memory, however often it is mapped
    bool shared, lingers;                  // other descriptors may name it; only they still do
    struct sim_chunk *next_shared, **link; // in the list of shared ones
};

// No handle and no mapping yet. NULL: no memory.
struct sim_chunk *sim_chunk_new(struct sim_device *device, size_t size,
                                const CUmemAllocationProp *properties);
int sim_chunk_file(const struct sim_chunk *chunk);
// To be called after a handle or a mapping went: ends a chunk that has none left, here or in other
// processes.
void sim_chunk_settle(struct sim_chunk *chunk);
// Ends chunks that only other processes used, and none uses any more.
void sim_chunks_collect(void);

// A descriptor that keeps some neighbouring chunks of one store, positioned at the first's bytes,
// `skip` bytes on. -1: none to be had.
int sim_chunk_describe(struct sim_chunk *const *chunks, size_t count, size_t skip);
// The chunk that an exported descriptor names; the descriptor stays the caller's.
CUresult sim_chunk_import(int descriptor, struct sim_chunk **out);

#endif

// Windows of addresses beside the devices' own, for reserved addresses and for memory of other
// processes. Guarded by the lock.
#ifndef SIM_WINDOW_H
#define SIM_WINDOW_H

#include "sim/memory/allocation.h"
#include <cuda.h>
#include <sys/types.h>

struct sim_chunk;

struct sim_mapping {
    struct sim_mapping *next, **link;
    struct sim_allocation as; // what pointers into it tell; in no context's list
    uintptr_t first;          // address that is mapped; `as` may begin behind it
    struct sim_chunk *chunk;  // NULL: another process's memory
    unsigned access, writes;  // a bit for each device
};

struct sim_window {
    struct sim_window *next;
    uintptr_t start;
    size_t size;
    char *alias;    // where the bytes are
    void *reserved; // as it was mapped,
    size_t room;    // with what aligns it
    struct sim_mapping *mappings;
    struct sim_mapping **pages; // of each page of addresses, what is mapped there
    unsigned opened;            // of imports: how often
    char token[CU_IPC_HANDLE_SIZE];
};

// Alignment: a power of two, 2 MiB at least. NULL: no addresses.
struct sim_window *sim_window_new(size_t size, size_t alignment);
void sim_window_drop(struct sim_window *window);
struct sim_window *sim_window_at(uintptr_t address);
struct sim_window *sim_window_first(void);
struct sim_mapping *sim_window_mapping(const struct sim_window *window, uintptr_t address);
bool sim_window_bare(const struct sim_window *window, uintptr_t address, size_t size); // all of it
// Puts a file's pages into the alias; NULL on failure.
struct sim_mapping *sim_window_map(struct sim_window *window, uintptr_t address, size_t size,
                                   int file, off_t offset);
void sim_window_unmap(struct sim_window *window, struct sim_mapping *mapping);
CUmemAccess_flags sim_mapping_access(const struct sim_mapping *mapping,
                                     const struct sim_device *device);
bool sim_virtual_at(uintptr_t address);
bool sim_virtual_writable(uintptr_t address, size_t bytes); // for the work of this thread
char *sim_virtual_reach(uintptr_t address, size_t bytes);   // NULL: not all is mapped
struct sim_allocation *sim_virtual_allocation(uintptr_t address);

#endif

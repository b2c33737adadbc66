// A device's pages, and what each is taken by. Guarded by the lock.
#ifndef SIM_PAGES_H
#define SIM_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_device;

// A page's owner: an allocation, a slab with the lowest bit set, or this: memory that is only
// reached through other addresses.
#define SIM_HIDDEN_PAGE ((uintptr_t)2)

uintptr_t sim_pages_take(struct sim_device *device, size_t pages, uintptr_t owner); // 0: no memory
void sim_pages_give(struct sim_device *device, uintptr_t start, size_t pages);
bool sim_pages_taken(const struct sim_device *device, uintptr_t address, size_t bytes); // all

#endif

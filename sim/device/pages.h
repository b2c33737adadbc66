// A device's pages, and what each is taken by. Guarded by the lock.
#ifndef SIM_PAGES_H
#define SIM_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_device;

// Counts memory as used that has no place in the device's window; false: there is not so much.
bool sim_pages_charge(struct sim_device *device, size_t pages);
void sim_pages_refund(struct sim_device *device, size_t pages);

// A page's owner: an allocation, or a slab with the lowest bit set.
uintptr_t sim_pages_take(struct sim_device *device, size_t pages, uintptr_t owner); // 0: no memory
void sim_pages_give(struct sim_device *device, uintptr_t start, size_t pages);
bool sim_pages_taken(const struct sim_device *device, uintptr_t address, size_t bytes); // all

#endif

// Where a copy reads and writes, and how much.
#ifndef SIM_PLACE_H
#define SIM_PLACE_H

#include <stddef.h>
#include <stdint.h>

struct sim_place {
    uintptr_t start;
    size_t pitch, slice; // bytes from row to row, from layer to layer
};

struct sim_extent {
    size_t width, height, depth; // bytes, rows, layers
};

enum sim_wait { SIM_WAIT, SIM_LATER };

#endif

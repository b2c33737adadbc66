// Seeded choices. Thread-safe.
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdint.h>

uint64_t sim_mix(uint64_t state); // splitmix64

#endif

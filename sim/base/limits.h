// The sizes that the stand-in GPU is made of.
#ifndef SIM_LIMITS_H
#define SIM_LIMITS_H

#include <stddef.h>

#define SIM_PAGE ((size_t)2 << 20) // what device memory is mapped by
#define SIM_GRAIN ((size_t)512)    // what small allocations are cut by
#define SIM_MAX_DEVICES 16
#define SIM_MAX_STACK 64 // contexts a thread may push
#define SIM_BEST_PRIORITY (-5)
#define SIM_STALE 0xdb // what a freed small allocation is overwritten with

#endif

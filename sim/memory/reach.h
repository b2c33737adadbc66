// Where bytes really are. Guarded by the lock.
#ifndef SIM_REACH_H
#define SIM_REACH_H

#include <stddef.h>
#include <stdint.h>

// Where the bytes of a span are for stream work, or NULL: nothing is mapped there.
char *sim_reach(uintptr_t address, size_t bytes);

#endif

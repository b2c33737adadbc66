// Calls that stop where they are (SIM_HALT), for those who kill or look at a process at a named
// moment.
#ifndef SIM_HALT_H
#define SIM_HALT_H

#include <stdbool.h>

struct sim_call;

// Whether the call at hand, which was counted, is to stop. Guarded by the lock.
bool sim_halts(const struct sim_call *call);

// Makes the file that SIM_HALT names, and stays until somebody has removed it. Without the lock.
void sim_halt(void);

#endif

// A device that goes by calls. Guarded by the lock.
#ifndef SIM_STEP_H
#define SIM_STEP_H

#include <stdbool.h>

struct CUstream_st;

void sim_step(void);                             // one driver call has passed
bool sim_step_ahead(void);                       // does what is due next; false: there is nothing
bool sim_step_begin(struct CUstream_st *stream); // has work from now on

#endif

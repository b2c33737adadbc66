// A stream's first piece of work, done. Guarded by the lock.
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include <stdbool.h>

struct CUstream_st;

// Does the first piece, without the lock. False: it waits for the host and wants to be asked again.
bool sim_stream_work(struct CUstream_st *stream);

#endif

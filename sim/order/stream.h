// Streams at work. Guarded by the lock.
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <cuda.h>

struct sim_work;

// Puts work at a stream's end, behind what its kind and its context make it wait for.
CUresult sim_submit(struct CUstream_st *stream, struct sim_work *work);
void sim_stream_close(struct CUstream_st *stream);

#endif

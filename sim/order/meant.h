// Which stream a handle means. Guarded by the lock.
#ifndef SIM_MEANT_H
#define SIM_MEANT_H

#include <cuda.h>
#include <stdbool.h>

// The stream that a handle means to the calling thread, or NULL with `*result` set.
struct CUstream_st *sim_stream_of(CUstream handle, bool per_thread, CUresult *result);

#endif

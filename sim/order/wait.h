// The host waits. Guarded by the lock, which is given back meanwhile.
#ifndef SIM_WAIT_H
#define SIM_WAIT_H

#include "sim/base/work.h"

CUresult sim_wait(struct sim_marks *marks); // drops the marks
CUresult sim_stream_finish(struct CUstream_st *stream);
CUresult sim_context_finish(struct CUctx_st *context); // for all of its streams
void sim_devices_finish(void);                         // for all contexts

#endif

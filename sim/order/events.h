// Events. Guarded by the lock.
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <cuda.h>

struct CUevent_st *sim_event_of(CUevent handle); // NULL: none
CUresult sim_event_record(struct CUevent_st *event, struct CUstream_st *stream);
void sim_event_forget(struct CUevent_st *event); // what it recorded
void sim_event_end(struct CUevent_st *event);    // once it is in no list
void sim_context_events_end(struct CUctx_st *context);

#endif

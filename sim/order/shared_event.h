// What processes share of an event: how often it was recorded, and which of these records have
// completed. Guarded by the lock; the other processes' parts change at any time.
#ifndef SIM_SHARED_EVENT_H
#define SIM_SHARED_EVENT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_shared_event;

struct sim_shared_event *sim_shared_event_new(void);                       // NULL: no memory
struct sim_shared_event *sim_shared_event_open(int32_t pid, int32_t file); // NULL: it is gone
int sim_shared_event_file(const struct sim_shared_event *event);
void sim_shared_event_hold(struct sim_shared_event *event);
void sim_shared_event_release(struct sim_shared_event *event);    // NULL: nothing
uint64_t sim_shared_event_record(struct sim_shared_event *event); // the record's number
void sim_shared_event_complete(struct sim_shared_event *event, uint64_t record);
bool sim_shared_event_ready(const struct sim_shared_event *event); // its latest record
// The stream waits for the latest record; the host does, without the lock meanwhile.
CUresult sim_shared_event_await(struct sim_shared_event *event, struct CUstream_st *stream);
void sim_shared_event_finish(struct sim_shared_event *event);

#endif

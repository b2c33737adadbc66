// How often each function was called. Guarded by the lock.
#ifndef SIM_STATS_H
#define SIM_STATS_H

struct sim_call;

void sim_stats_introduce(struct sim_call *call); // at its first call
void sim_stats_write(void);                      // SIM_STATS
// Counts a call that is not modelled and so does not pass the border. Takes the lock.
void sim_stats_count(struct sim_call *call);
// The same for a function of the runtime, which finds this with dlsym.
__attribute__((visibility("default"))) void sim_unmodelled_call(const char *name);
// For tests, found with dlsym: how often an exported function was called; 0 for unknown names.
// Takes the lock.
__attribute__((visibility("default"))) unsigned long long sim_call_count(const char *name);

#endif

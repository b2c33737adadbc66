// How often each function was called. Guarded by the lock.
#ifndef SIM_STATS_H
#define SIM_STATS_H

struct sim_call;

void sim_stats_introduce(struct sim_call *call); // at its first call
void sim_stats_write(void);                      // SIM_STATS
// For tests, found with dlsym: how often an exported function was called; 0 for unknown names.
// Takes the lock.
__attribute__((visibility("default"))) unsigned long long sim_call_count(const char *name);

#endif

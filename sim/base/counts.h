// What is counted, apart from the calls by name. Guarded by the lock.
#ifndef SIM_COUNTS_H
#define SIM_COUNTS_H

#include <stdbool.h>

struct sim_counts {
    unsigned long long total; // calls
    unsigned long long waits, blocked_waits, records, device_waits;
    unsigned long long spinning_waits; // for an event, which a context that is to sleep spins for
    unsigned long long late;           // calls made, or under way, when the driver had gone
    unsigned long long trespasses;     // other threads' in a context that is being destroyed
    unsigned long long stale;          // calls with a handle that is no stream's any more, or ever
};
extern struct sim_counts sim_counts;

void sim_count_wait(bool blocked);

#endif

// The variables SIM_*, which sim/README.md describes. Guarded by the lock.
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include "sim/base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_options {
    int devices;                // that the process sees
    int installed;              // that the machine has
    int place[SIM_MAX_DEVICES]; // of each that it sees, its number in the machine
    size_t memory;              // bytes of each device
    uint64_t seed;              // 0: work is not delayed
    unsigned delay_us;
    unsigned step; // 0: streams have threads; else the longest a piece waits, in calls
    const char *stats;
    int driver_version;
    bool peers;
    bool mapping;         // devices have virtual memory management
    bool maps_host;       // the devices reach pinned host memory
    bool host_free_waits; // cuMemFreeHost waits for the context
    bool faults_spread;   // a kernel's failure is that of all contexts on its device
    bool low;             // the first device's addresses begin where 32-bit pointers reach
    bool fresh_zero;      // what was not allocated before, or was freed, is zero
    bool skips_kernels;   // code that is not known is launched, takes time and does nothing
    const char *latency;
    const char *fail;
    const char *needs;
    const char *halt;
    const char *share;
};
extern struct sim_options sim_options;
void sim_options_read(void); // at the first call; later ones do nothing
// What a call costs, by SIM_LATENCY.
struct sim_latency {
    double us, us_per_mib;
};
struct sim_latency sim_latency_of(const char *call);
size_t sim_need_of(const char *call); // SIM_NEEDS, in bytes
bool sim_stands_for(const char *name, size_t length, const char *call);
void sim_complain(const char *name, const char *value, const char *accepted);

#endif

// What is known of one exported function.
#ifndef SIM_CALL_RECORD_H
#define SIM_CALL_RECORD_H

#include <stdbool.h>
#include <stddef.h>

// Linked into a list at its first call.
struct sim_call {
    const char *name;
    struct sim_call *next;
    unsigned long long count;
    double latency_us, latency_us_per_mib;
    size_t need;      // bytes
    const int *codes; // that it may be refused with at random; NULL: none
    bool known;
    bool unmodelled; // it only answers that it is not supported
};

#endif

/* Runs an input through the real pool, over made-up devices, and counts what it comes to. */
#ifndef BFC_REPLAY_REPLAY_H
#define BFC_REPLAY_REPLAY_H

#include "interpose/config/options.h"
#include "tools/replay/device.h"
#include "tools/replay/input.h"

struct settings {
    struct bfc_options options;
    uint64_t memory;  /* bytes that each device has; UINT64_MAX: no end */
    uint32_t lag;     /* calls until freed memory's work is complete (lazy, ordered) */
    double device_us; /* what one device call is taken to cost, in microseconds */
    bool time_it;     /* measure ns_per_pair */
};

struct result {
    uint64_t pairs;         /* allocations that were served */
    uint64_t peak_live;     /* most bytes that the program held, as asked for */
    uint64_t peak_reserved; /* most bytes taken from all devices */
    uint64_t device_calls;  /* asked of the devices, refused ones too */
    uint64_t failed;        /* allocations that were not served */
    uint64_t retries;       /* served only after something was waited for or given back */
    uint64_t waits;
    double waste;       /* share of peak_reserved that peak_live did not need */
    double ns_per_pair; /* of an allocation and its free; 0: not measured */
};

/* `log` may be NULL. False: the host's memory does not suffice. */
bool replay(const struct input *input, const struct settings *settings, struct log *log,
            struct result *result, struct plan_error *error);

#endif

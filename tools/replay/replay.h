/* Makes the allocations and frees of an input with the library's own pool over simulated devices,
 * and counts what happens. */
#ifndef BFC_REPLAY_REPLAY_H
#define BFC_REPLAY_REPLAY_H

#include "interpose/config/options.h"
#include "tools/replay/input.h"
#include "tools/replay/replay_device.h"

#define MOST_REPEATS 64

struct settings {
    struct bfc_options options;
    uint64_t memory; /* bytes of memory that each device has; UINT64_MAX: it never runs out */
    /* free modes lazy and ordered: for how many further calls the device uses a freed block */
    uint32_t lag;
    double device_us; /* how long a call of the device is assumed to take, in microseconds */
    bool time_it;     /* whether to measure result.ns_per_pair */
    /* Bytes of the largest page, if the pools have pages; 0: as large as a job would make it. */
    uint64_t page_most;
    uint32_t repeats; /* how many times the input is replayed; at least 1 */
};

struct result {
    uint64_t pairs;     /* number of allocations that were served */
    uint64_t frees;     /* number of served allocations that the input frees */
    uint64_t peak_live; /* the most bytes that the program held at a time, as it requested them */
    uint64_t peak_reserved; /* the most bytes that were taken from all devices at a time */
    uint64_t device_calls;  /* number of calls of the devices, including those that they refused */
    uint64_t failed;        /* number of allocations that failed */
    /* number of allocations that were served only after a wait, or after regions were given back */
    uint64_t retries;
    uint64_t waits;
    /* allocations that got host memory in the recorded job; here they get device memory */
    struct spilled spilled;
    uint64_t moved;   /* bytes of pages that were moved to other addresses */
    double device_us; /* how long the device's calls take by their assumed costs, in microseconds */
    uint64_t pass_calls[MOST_REPEATS]; /* device calls in each pass (replay of the whole input) */
    /* bytes of pages made and moved in the first pass (replay of the whole input) */
    uint64_t pass_bytes;
    bool paged;         /* whether the pools used pages, not whole regions */
    double waste;       /* the share of peak_reserved that exceeds peak_live, 0 to 1 */
    double ns_per_pair; /* nanoseconds for an allocation and its free; 0: not measured */
};

/* Replays the input and fills in `result`. `log` gets an entry for each region and block; it may be
 * NULL. False: out of memory. */
bool replay(const struct input *input, const struct settings *settings, struct log *log,
            struct result *result, struct plan_error *error);

#endif

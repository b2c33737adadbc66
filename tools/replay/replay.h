/* Runs an input through the real pool, over simulated devices, and counts what happens. */
#ifndef BFC_REPLAY_REPLAY_H
#define BFC_REPLAY_REPLAY_H

#include "interpose/config/options.h"
#include "tools/replay/input.h"
#include "tools/replay/replay_device.h"

#define MOST_REPEATS 64

struct settings {
    struct bfc_options options;
    uint64_t memory;    /* bytes that each device has; UINT64_MAX: no end */
    uint32_t lag;       /* calls after a free until the device's work is complete (lazy, ordered) */
    double device_us;   /* assumed cost of one device call, in microseconds */
    bool time_it;       /* whether to measure result.ns_per_pair */
    uint64_t page_most; /* if the pools have pages: bytes of the largest page; 0: the size that a
                           job would use */
    uint32_t repeats;   /* how many times the input is replayed; at least 1 */
};

struct result {
    uint64_t pairs;         /* allocations that were served */
    uint64_t frees;         /* allocations that were served and that the input frees */
    uint64_t peak_live;     /* most bytes that the program held, as asked for */
    uint64_t peak_reserved; /* most bytes taken from all devices */
    uint64_t device_calls;  /* calls of the devices, refused ones included */
    uint64_t failed;        /* allocations that were not served */
    uint64_t retries;       /* allocations that were served only after a wait or a release */
    uint64_t waits;
    struct spilled spilled; /* recorded host memory, which is replayed as device memory */
    uint64_t moved;         /* bytes of pages that moved */
    double device_us;       /* microseconds that the device's calls take by their assumed costs */
    uint64_t pass_calls[MOST_REPEATS]; /* device calls in each pass */
    uint64_t pass_bytes;               /* bytes of pages made and moved in the first pass */
    bool paged;                        /* whether the pools have pages */
    double waste;       /* which share of peak_reserved was not needed for peak_live */
    double ns_per_pair; /* time of an allocation and its free; 0: not measured */
};

/* `log` may be NULL. False: the host's memory does not suffice. */
bool replay(const struct input *input, const struct settings *settings, struct log *log,
            struct result *result, struct plan_error *error);

#endif

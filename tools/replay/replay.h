/* Runs an input through the real pool, over made-up devices, and counts what it comes to. */
#ifndef BFC_REPLAY_REPLAY_H
#define BFC_REPLAY_REPLAY_H

#include "interpose/config/options.h"
#include "tools/replay/input.h"
#include "tools/replay/replay_device.h"

#define MOST_REPEATS 64

struct settings {
    struct bfc_options options;
    uint64_t memory;    /* bytes that each device has; UINT64_MAX: no end */
    uint32_t lag;       /* calls until freed memory's work is complete (lazy, ordered) */
    double device_us;   /* what one device call is taken to cost, in microseconds */
    bool time_it;       /* measure ns_per_pair */
    uint64_t page_most; /* with pages: bytes of the largest; 0: as in a job */
    uint32_t repeats;   /* passes through the input, from 1 on */
};

struct result {
    uint64_t pairs;         /* allocations that were served */
    uint64_t frees;         /* of them, those that the input frees */
    uint64_t peak_live;     /* most bytes that the program held, as asked for */
    uint64_t peak_reserved; /* most bytes taken from all devices */
    uint64_t device_calls;  /* asked of the devices, refused ones too */
    uint64_t failed;        /* allocations that were not served */
    uint64_t retries;       /* served only after something was waited for or given back */
    uint64_t waits;
    struct spilled spilled;            /* of what was recorded; replayed as the device's */
    uint64_t moved;                    /* bytes of pages that moved */
    double device_us;                  /* what the device's calls took, by the model */
    uint64_t pass_calls[MOST_REPEATS]; /* of them, in each pass */
    uint64_t pass_bytes;               /* bytes of pages made and moved in the first pass */
    bool paged;                        /* with pages behind the pools */
    double waste;                      /* share of peak_reserved that peak_live did not need */
    double ns_per_pair;                /* of an allocation and its free; 0: not measured */
};

/* `log` may be NULL. False: the host's memory does not suffice. */
bool replay(const struct input *input, const struct settings *settings, struct log *log,
            struct result *result, struct plan_error *error);

#endif

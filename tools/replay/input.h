/*
 * Reads what bfcreplay replays, a CSV of lifetimes or a recorded trace, as a sequence of
 * allocations and frees. bfcplan's functions are used, so both programs accept the same files.
 */
#ifndef BFC_REPLAY_INPUT_H
#define BFC_REPLAY_INPUT_H

#include "tools/plan/trace/trace_events.h"

struct input_stack {
    uint32_t site; /* index of the call stack (site) in input.who; 0: it was not recorded */
    /* how many allocations this one stands for, if only some call stacks were recorded */
    double weight;
};

struct input {
    struct events events;
    struct lifetimes lifetimes; /* the rows of a CSV; empty for a trace */
    /* for each allocation: its call stack; NULL: the trace has no call stacks */
    struct input_stack *stacks;
    struct bfc_who who; /* the call stacks to which `stacks` refers */
    /* the settings of the recorded job, lines NAME=value; NULL: they were not recorded */
    char *settings;
    uint64_t device_bytes; /* bytes of memory of the recorded job's device; 0: not known */
    bool from_trace;
    bool cut_off; /* whether the end of the trace is missing */
    uint32_t devices;
};

/* Reads the file at `path` into `input`, which input_free frees. False: `error` says why, and there
 * is nothing to free. */
bool input_read(struct input *input, const char *path, struct plan_error *error);
void input_free(struct input *input);

/* Allocations that got host memory when the trace was recorded, because the device had no room
 * (BFC_SPILL). A CSV has none. */
struct spilled {
    uint64_t blocks;
    /* the most bytes that the allocations in host memory had at a time, as the program requested
     * them */
    uint64_t peak;
};
struct spilled input_spilled(const struct input *input);

/* Returns how outputs name an allocation: by its id in a CSV; in a trace by its serial number,
 * which is written into `text`. */
#define INPUT_NAME 24
struct name input_name(const struct input *input, uint32_t allocation, char text[INPUT_NAME]);

#endif

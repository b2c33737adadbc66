/*
 * Reads what is replayed, a CSV of lifetimes or a recorded trace, as a sequence of calls. The
 * planner's readers are used, so both programs accept the same files.
 */
#ifndef BFC_REPLAY_INPUT_H
#define BFC_REPLAY_INPUT_H

#include "tools/plan/trace/trace_events.h"

struct input_stack {
    uint32_t site; /* index of the site of the call stack; 0: the stack was not recorded */
    double weight; /* how many blocks the sample stands for */
};

struct input {
    struct events events;
    struct lifetimes lifetimes; /* rows of a CSV; empty for a trace */
    struct input_stack *stacks; /* by allocation: its call stack; NULL: the trace has no stacks */
    struct bfc_who who;         /* the sites that `stacks` refers to */
    char *settings;             /* lines NAME=value of the recorded job; NULL: not recorded */
    uint64_t device_bytes;      /* memory of the recorded job's device; 0: unknown */
    bool from_trace;
    bool cut_off; /* the trace's tail is missing */
    uint32_t devices;
};

/* Free with input_free. False: `error` says why, and there is nothing to free. */
bool input_read(struct input *input, const char *path, struct plan_error *error);
void input_free(struct input *input);

/* Allocations that were host memory when the trace was recorded (BFC_SPILL). A CSV has none. */
struct spilled {
    uint64_t blocks;
    uint64_t peak; /* the most bytes that these allocations had at any time, as the program
                      requested them */
};
struct spilled input_spilled(const struct input *input);

/* Returns the name of an allocation: its id in a CSV, or its serial number in a trace, which is
 * written into `text`. */
#define INPUT_NAME 24
struct name input_name(const struct input *input, uint32_t allocation, char text[INPUT_NAME]);

#endif

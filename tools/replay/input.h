/*
 * What is replayed: a CSV of lifetimes or a recorded trace, as calls in their order. Read by the
 * planner's readers, so both programs take the same files and refuse the same ones.
 */
#ifndef BFC_REPLAY_INPUT_H
#define BFC_REPLAY_INPUT_H

#include "tools/plan/trace/trace_events.h"

struct input_stack {
    uint32_t site; /* index; 0: the stack was not taken */
    double weight; /* blocks that the sample stands for */
};

struct input {
    struct events events;
    struct lifetimes lifetimes; /* of a CSV; empty for a trace */
    struct input_stack *stacks; /* by allocation; NULL: the trace has none */
    struct bfc_who who;         /* whose sites they are */
    bool from_trace;
    bool cut_off; /* the trace's tail is missing */
    uint32_t devices;
};

/* Free with input_free. False: `error` says why, and nothing is to be freed. */
bool input_read(struct input *input, const char *path, struct plan_error *error);
void input_free(struct input *input);

/* What was host memory when it was recorded (BFC_SPILL); nothing in a CSV. */
struct spilled {
    uint64_t blocks;
    uint64_t peak; /* most bytes of them at any time, as asked for */
};
struct spilled input_spilled(const struct input *input);

/* The name of an allocation: a CSV's id, a trace's serial. `text` holds it if need be. */
#define INPUT_NAME 24
struct name input_name(const struct input *input, uint32_t allocation, char text[INPUT_NAME]);

#endif

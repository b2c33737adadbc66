/*
 * Pages that fail from some moment on (SIM_FAIL), so that a pool has pages and plain regions side
 * by side: contents stay what they were, while blocks come and go under work of several streams,
 * and one context follows the other.
 */
#include "tests/conformance/gpu.h"

enum { SLOTS = 16, STEPS = 60, STREAMS = 2, CONTEXTS = 3 };

struct slot {
    char *block; /* NULL: none */
    size_t bytes;
    unsigned value;
};

static unsigned next_random(void) {
    static unsigned state = 12345;
    state = state * 1103515245u + 12345u;
    return state >> 8;
}

/* Small ones, and such as need new memory. */
static size_t random_bytes(void) {
    size_t most = next_random() % 4 ? 4 * MIB : 40 * KIB;
    return 1 + next_random() * 64ull % most;
}

static bool is_intact(const struct slot *slot) {
    return !slot->block || holds(slot->block, slot->bytes, slot->value);
}

/* Freed while its last work may still be under way. */
static void replace(struct slot *slot, CUstream stream) {
    if (slot->block)
        MUST(release(slot->block));
    *slot = (struct slot){.bytes = random_bytes(), .value = next_random() % 255};
    slot->block = new_block(slot->bytes);
    slow_fill(stream, slot->block, slot->bytes, slot->value, 1);
}

/* An end, and a look at a block now and then. */
static unsigned run_steps(struct slot *slots, const CUstream *streams) {
    unsigned wrong = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        replace(&slots[next_random() % SLOTS], streams[i % STREAMS]);
        if (i % 10)
            continue;
        MUST(synchronize());
        wrong += !is_intact(&slots[next_random() % SLOTS]);
    }
    MUST(synchronize());
    return wrong;
}

static void run_context(void) {
    struct slot slots[SLOTS] = {{0}};
    CUstream streams[STREAMS];
    CUcontext context;
    MUST(CREATE_CONTEXT(&context, 0));
    for (int i = 0; i < STREAMS; i++)
        streams[i] = new_stream();
    unsigned wrong = run_steps(slots, streams);
    for (int i = 0; i < SLOTS; i++)
        wrong += !is_intact(&slots[i]);
    tell("contents are intact", wrong == 0);
    MUST(cuCtxDestroy(context));
}

int main(void) {
    MUST(cuInit(0));
    for (int i = 0; i < CONTEXTS; i++)
        run_context();
    return 0;
}

/*
 * What lazy and ordered promise about calls, counted at the stand-in GPU: frees and allocations of
 * memory that is still in use make no host wait, a free records once, events are used again, and
 * what is asked about them is bounded a call.
 */
#include "tests/conformance/gpu.h"

/*
 * A place for a fence keeps its event, and there are as many places as the next power of two above
 * the most that were ever pending at once: those of a round, and what the last look left over.
 */
enum { ROUNDS = 60, BATCH = 20, BLOCKS = 5, QUERIES_A_CALL = 16, MOST_EVENTS = 4 * BATCH * BLOCKS };

static const size_t bytes = 100 * KIB;

static unsigned long long count(const char *name) {
    unsigned long long (*counter)(const char *);
    *(void **)&counter = dlsym(RTLD_DEFAULT, "sim_call_count");
    if (!counter)
        skip("the stand-in GPU, which counts");
    return counter(name);
}

struct counts {
    unsigned long long waits, records, events, queries;
};

static struct counts counts(void) {
    return (struct counts){count("waits"), count("cuCtxRecordEvent"), count("cuEventCreate"),
                           count("cuEventQuery")};
}

/* Blocks change hands while work is under way, in two streams. */
static void cycle(CUstream streams[2]) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BATCH; i++) {
        for (int k = 0; k < BLOCKS; k++) {
            unsigned long long at, size = bytes, us = 20;
            unsigned value = (unsigned)i;
            blocks[k] = new_block(bytes);
            at = address(blocks[k]);
            MUST(launch(streams[k % 2], "slow_fill", (void *[]){&at, &size, &value, &us}));
        }
        for (int k = 0; k < BLOCKS; k++)
            MUST(release(blocks[k]));
    }
}

int main(void) {
    use_device(0);
    kernel("slow_fill");
    CUstream streams[2] = {new_stream(), new_stream()};
    const unsigned long long calls = (unsigned long long)ROUNDS * BATCH * BLOCKS;
    cycle(streams);
    MUST(synchronize());
    struct counts before = counts();
    for (int round = 0; round < ROUNDS; round++) {
        cycle(streams);
        MUST(synchronize());
    }
    struct counts after = counts();
    tell("no host wait but the program's own", after.waits - before.waits == ROUNDS);
    tell("one record a free", after.records - before.records == calls);
    tell("events are used again", after.events - before.events <= MOST_EVENTS);
    tell("queries a call are bounded",
         after.queries - before.queries <= QUERIES_A_CALL * 2 * calls);
    return 0;
}

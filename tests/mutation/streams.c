/*
 * What frees in the order of streams cost, counted at the stand-in GPU: one record each, in the
 * stream; no host wait, no fence over the whole context; events are used again, and what is asked
 * about them is bounded a call. Also while a kernel waits for the host in between.
 */
#include "tests/conformance/gpu.h"

enum { ROUNDS = 40, BLOCKS = 50, QUERIES_A_CALL = 18 };

static const size_t bytes = 100 * KIB;

static unsigned long long count(const char *name) {
    unsigned long long (*counter)(const char *);
    *(void **)&counter = dlsym(RTLD_DEFAULT, "sim_call_count");
    if (!counter)
        skip("the stand-in GPU, which counts");
    return counter(name);
}

struct counts {
    unsigned long long waits, records, fences, events, queries;
};

static struct counts counts(void) {
    return (struct counts){count("waits"), count("cuEventRecord"), count("cuCtxRecordEvent"),
                           count("cuEventCreate"), count("cuEventQuery")};
}

static void cycle(CUstream streams[2]) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = new_block(bytes);
        fill(streams[i % 2], blocks[i], bytes, 1);
    }
    for (int i = 0; i < BLOCKS; i++)
        MUST(release_async(blocks[i], streams[i % 2]));
}

static void look(CUstream streams[2]) {
    const unsigned long long calls = (unsigned long long)ROUNDS * BLOCKS;
    struct counts before = counts();
    for (int round = 0; round < ROUNDS; round++) {
        cycle(streams);
        MUST(cuStreamSynchronize(streams[0]));
        MUST(cuStreamSynchronize(streams[1]));
    }
    struct counts after = counts();
    tell("no host wait but the program's own", after.waits - before.waits == 2ull * ROUNDS);
    tell("one record a free", after.records - before.records == calls);
    tell("no fence", after.fences == before.fences);
    tell("events are used again", after.events - before.events <= 2 * BLOCKS);
    tell("queries a call are bounded",
         after.queries - before.queries <= QUERIES_A_CALL * 2 * calls);
}

int main(void) {
    unsigned one = 1;
    CUdeviceptr mapped;
    void *flag;
    use_device(0);
    MUST(cuMemHostAlloc(&flag, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&mapped, flag, 0));
    unsigned long long at = mapped;
    CUstream streams[2] = {new_stream(), new_stream()}, stuck = new_stream();
    kernel("fill");
    *(volatile unsigned *)flag = 0;
    look(streams);
    void *held = new_block(bytes);
    MUST(launch(stuck, "wait_flag", (void *[]){&at, &one}));
    MUST(release_async(held, stuck));
    look(streams);
    *(volatile unsigned *)flag = 1;
    MUST(synchronize());
    return 0;
}

/*
 * A tool that uses memory, streams and contexts in the middle of the driver's calls, those that the
 * library makes included: nothing hangs, and nothing is refused.
 */
#include <dlfcn.h>

#include "tests/conformance/gpu.h"

enum { ROOM = 256 };

static __thread bool is_in_tool;
static CUdeviceptr own;
static CUstream second;
static int refused;

static void use_memory(void) {
    void *block;
    size_t left, all;
    refused += allocate(&block, 3 * MIB) != CUDA_SUCCESS || release(block) != CUDA_SUCCESS;
    refused += DRIVER(cuMemGetInfo)(&left, &all) != CUDA_SUCCESS;
}

static void submit(void) {
    refused += DRIVER(cuMemsetD8Async)(own, 1, 512, second) != CUDA_SUCCESS;
}

static void make_context(void) {
    CUcontext made;
    void *block;
    if (CREATE_CONTEXT(&made, 0) != CUDA_SUCCESS) {
        refused++;
        return;
    }
    refused += allocate(&block, MIB) != CUDA_SUCCESS;
    refused += DRIVER(cuCtxDestroy)(made) != CUDA_SUCCESS;
}

static const struct use {
    const char *name;
    void (*use)(void);
    const char *call; /* the call in which the tool does it each time; NULL: once in each call */
} uses[] = {{"memory", use_memory, NULL},
            {"a stream", submit, NULL},
            {"a stream, while streams are ordered", submit, "cuCtxRecordEvent"},
            {"a context", make_context, NULL}};

static const struct use *now;

static const char *seen[ROOM];

/* Whether the tool was told of no such call before. */
static bool is_new(const char *call) {
    unsigned i = 0;
    while (seen[i] && strcmp(seen[i], call) != 0)
        i++;
    bool new = !seen[i] && i < ROOM - 1;
    if (new)
        seen[i] = call;
    return new;
}

static void tell_tool(const char *call) {
    if (is_in_tool || (now->call ? strcmp(call, now->call) != 0 : !is_new(call)))
        return;
    is_in_tool = true;
    now->use();
    is_in_tool = false;
}

static void capture(CUstream stream, void *block) {
    CUgraph graph;
    void *more;
    MUST(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(DRIVER(cuMemsetD8Async)(address(block), 2, 512, stream));
    MUST(allocate(&more, 2 * MIB));
    MUST(release(more));
    MUST(DRIVER(cuStreamEndCapture)(stream, &graph));
    MUST(DRIVER(cuGraphDestroy)(graph));
}

static void run(void) {
    CUstream streams[2];
    CUcontext other;
    void *blocks[8];
    size_t left, all;
    for (int i = 0; i < 2; i++)
        MUST(DRIVER(cuStreamCreate)(&streams[i], CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 8; i++) {
            blocks[i] = new_block((size_t)(1 + (i * 7 + round) % 13) * MIB);
            MUST(DRIVER(cuMemsetD8Async)(address(blocks[i]), 1, 512, streams[round % 20 == 19]));
        }
        for (int i = 0; i < 8; i++)
            MUST(release(blocks[i]));
        if (round % 10 == 9)
            MUST(synchronize());
    }
    blocks[0] = new_block(MIB);
    for (int i = 0; i < 2; i++)
        capture(streams[i], blocks[0]);
    MUST(CREATE_CONTEXT(&other, 0));
    new_block(MIB);
    MUST(DRIVER(cuMemGetInfo)(&left, &all));
    MUST(DRIVER(cuCtxDestroy)(other));
    MUST(release(blocks[0]));
    for (int i = 0; i < 2; i++)
        MUST(DRIVER(cuStreamDestroy)(streams[i]));
}

int main(void) {
    void (*begin)(void (*)(const char *));
    use_device(0);
    own = address(new_block(MIB));
    second = new_stream();
    *(void **)&begin = dlsym(RTLD_DEFAULT, "sim_tool_watch");
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        now = &uses[i];
        memset(seen, 0, sizeof seen);
        begin(tell_tool);
        run();
        begin(NULL);
        printf("%s: %d refused\n", now->name, refused);
        refused = 0;
    }
    return 0;
}

/*
 * Frees in one stream and in several, with what the stand-in GPU counted of them: a line of a JSON
 * object for each scene. Contents are checked; a wrong byte ends the program with status 1.
 *
 * usage: streams SCENE...
 */
#define ROUTE_DRIVER
#include "tests/conformance/gpu.h"

enum { ROUNDS = 200 };
static const size_t bytes = MIB;

/* ---- what the stand-in counted ---- */

struct counts {
    unsigned long long records, orders, waits, queries, allocations;
};

static unsigned long long count_of(const char *name) {
    unsigned long long (*count)(const char *);
    *(void **)&count = dlsym(RTLD_DEFAULT, "sim_call_count");
    return count(name);
}

static struct counts count_all(void) {
    return (struct counts){count_of("event_records"), count_of("device_waits"), count_of("waits"),
                           count_of("cuEventQuery") + count_of("cuStreamQuery"),
                           count_of("cuMemAlloc_v2")};
}

static void print_since(const char *what, struct counts before) {
    struct counts now = count_all();
    printf("{\"scene\": \"%s\", \"records\": %llu, \"orders\": %llu, \"waits\": %llu, "
           "\"queries\": %llu, \"allocations\": %llu}\n",
           what, now.records - before.records, now.orders - before.orders, now.waits - before.waits,
           now.queries - before.queries, now.allocations - before.allocations);
}

/* ---- work ---- */

static void fail(const char *what) {
    puts(what);
    fflush(stdout);
    _exit(1);
}

static void check(void *block, unsigned value) {
    if (!holds(block, bytes, value))
        fail("wrong bytes");
}

/* Each round fills a block and frees it while that may be under way. */
static void use(CUstream stream, int rounds) {
    for (int i = 0; i < rounds; i++) {
        void *block = new_block(bytes);
        fill(stream, block, bytes, (unsigned)i);
        MUST(release(block));
    }
}

/* Uses the stream until frees need no fence; false: they still do. */
static bool settles(CUstream stream) {
    for (int tries = 0; tries < 1024; tries++) {
        MUST(synchronize());
        use(stream, 1);
        struct counts before = count_all();
        use(stream, 4);
        struct counts after = count_all();
        if (after.records == before.records)
            return true;
    }
    return false;
}

static void loop(const char *scene, CUstream stream) {
    use(stream, 1);
    struct counts before = count_all();
    use(stream, ROUNDS);
    print_since(scene, before);
}

/* ---- scenes ---- */

static void legacy(void) {
    loop("legacy", NULL);
}

/* Enough for three checks. */
static void pairs(void) {
    use(NULL, 1);
    struct counts before = count_all();
    for (int i = 0; i < 10; i++) {
        use(NULL, 1250);
        MUST((int)cuStreamSynchronize(NULL));
    }
    before.waits += 10;
    print_since("pairs", before);
}

static void created(void) {
    loop("created", new_stream());
}

static void blocking(void) {
    CUstream stream;
    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    use(stream, 1);
    struct counts before = count_all();
    for (int i = 0; i < ROUNDS; i++) {
        use(i % 2 ? stream : NULL, 1);
    }
    print_since("blocking", before);
}

static void per_thread(void) {
    loop("per_thread", CU_STREAM_PER_THREAD);
}

/* The block of a slow fill is freed and handed out again to another stream. */
static void second(void) {
    CUstream one = new_stream(), other = new_stream();
    use(one, 4);
    MUST(synchronize());
    struct counts before = count_all();
    void *block = new_block(bytes);
    slow_fill(one, block, bytes, 1, 30);
    MUST(release(block));
    void *next = new_block(bytes);
    fill(other, next, bytes, 2);
    print_since("second", before);
    MUST(synchronize());
    check(next, 2);
    MUST(release(next));
    before = count_all();
    for (int i = 0; i < ROUNDS / 2; i++) {
        use(one, 1);
        use(other, 1);
    }
    print_since("both", before);
    tell("one again", settles(one));
}

/* The third stream appears when there are several. */
static void three(void) {
    CUstream streams[] = {new_stream(), new_stream(), new_stream()};
    for (int i = 0; i < ROUNDS; i++)
        use(streams[i < ROUNDS / 2 ? i % 2 : i % 3], 1);
}

/* Many frees without work in between, in one of two streams. */
static void burst(void) {
    void *blocks[ROUNDS];
    CUstream one = new_stream(), other = new_stream();
    use(one, 1);
    use(other, 1);
    for (int i = 0; i < ROUNDS; i++)
        fill(i % 2 ? one : other, blocks[i] = new_block(bytes / 16), bytes / 16, 1);
    struct counts before = count_all();
    for (int i = 0; i < ROUNDS; i++)
        MUST(release(blocks[i]));
    print_since("burst", before);
}

/* Frees after a wait for everything. */
static void waited(void) {
    void *blocks[10];
    for (int i = 0; i < 10; i++)
        fill(NULL, blocks[i] = new_block(bytes), bytes, 1);
    MUST(synchronize());
    struct counts before = count_all();
    for (int i = 0; i < 10; i++)
        MUST(release(blocks[i]));
    print_since("waited", before);
    void *block = new_block(bytes);
    fill(NULL, block, bytes, 2);
    before = count_all();
    MUST(release(block));
    print_since("work again", before);
}

/* A stream is captured, and the graph launched in another. */
static void captured(void) {
    CUstream one = new_stream(), other = new_stream();
    CUgraph graph;
    CUgraphExec exec;
    void *kept = new_block(bytes);
    use(one, 4);
    void *block = new_block(bytes);
    slow_fill(one, block, bytes, 1, 30);
    MUST(release(block));
    MUST(begin_capture(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    fill(one, kept, bytes, 3);
    MUST(end_capture(one, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    void *next = new_block(bytes);
    fill(other, next, bytes, 4);
    MUST(cuGraphLaunch(exec, other));
    MUST(synchronize());
    check(next, 4);
    check(kept, 3);
    MUST(release(next));
    puts("captured: right");
}

/* The block of a slow fill goes to a copy of every kind, in another stream than the fill. */
static void by_every_call(void) {
    CUstream one = new_stream(), other = new_stream();
    void *from = new_block(bytes), *host;
    MUST(cuMemHostAlloc(&host, bytes, 0));
    memset(host, 5, bytes);
    fill(NULL, from, bytes, 5);
    MUST(synchronize());
    for (int call = 0; call < 9; call++) {
        if (!settles(one))
            fail("not one stream again");
        void *block = new_block(bytes);
        slow_fill(one, block, bytes, 1, 10);
        MUST(release(block));
        block = new_block(bytes);
        CUdeviceptr to = address(block);
        CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = address(from),
                              .srcPitch = KIB,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = to,
                              .dstPitch = KIB,
                              .WidthInBytes = KIB,
                              .Height = KIB};
        CUresult results[] = {
            call == 0 ? cuMemcpyDtoDAsync(to, address(from), bytes, other) : 0,
            call == 1 ? cuMemcpyHtoDAsync(to, host, bytes, other) : 0,
            call == 2 ? cuMemcpyAsync(to, address(from), bytes, other) : 0,
            call == 3 ? cuMemsetD8Async(to, 5, bytes, other) : 0,
            call == 4 ? cuMemsetD16Async(to, 0x0505, bytes / 2, other) : 0,
            call == 5 ? cuMemcpy2DAsync(&flat, other) : 0,
            call == 6 ? cuMemsetD2D8Async(to, KIB, 5, KIB, KIB, other) : 0,
            call == 7 ? cuMemcpyHtoD(to, host, bytes) : 0,
            call == 8 ? cuMemsetD8(to, 5, bytes) : 0,
        };
        for (int i = 0; i < 9; i++)
            MUST(results[i]);
        MUST(synchronize());
        check(block, 5);
        MUST(release(block));
    }
    puts("by every call: right");
}

/* The block of a slow fill goes to a launch that may begin before that has ended, in its stream. */
static void programmatic(void) {
    CUstream one = new_stream();
    use(one, 4);
    MUST(synchronize());
    void *block = new_block(bytes);
    slow_fill(one, block, bytes, 1, 30);
    struct counts before = count_all();
    MUST(release(block));
    block = new_block(bytes);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value.programmaticStreamSerializationAllowed = 1};
    CUlaunchConfig how = {.gridDimX = 4,
                          .gridDimY = 1,
                          .gridDimZ = 1,
                          .blockDimX = 64,
                          .blockDimY = 1,
                          .blockDimZ = 1,
                          .hStream = one,
                          .attrs = &attribute,
                          .numAttrs = 1};
    unsigned long long size = bytes;
    unsigned value = 2;
    MUST(cuLaunchKernelEx(&how, kernel("fill"), (void *[]){&block, &size, &value}, NULL));
    print_since("programmatic", before);
    MUST(synchronize());
    check(block, 2);
    MUST(release(block));
    tell("one again", settles(one));
}

/* Work in another stream, by a call that no hook sees; frees in the only stream go on. */
static void unseen(void) {
    CUresult (*private_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, unsigned, CUstream, void **, void **);
    void *(*private_call)(const char *);
    *(void **)&private_call = dlsym(RTLD_DEFAULT, "sim_private_entry");
    *(void **)&private_launch = private_call("cuLaunchKernel");
    CUstream one = new_stream(), other = new_stream();
    use(one, 1);
    unsigned long long us = 400000;
    MUST(private_launch(kernel("spin"), 1, 1, 1, 64, 1, 1, 0, other, (void *[]){&us}, NULL));
    struct counts before = count_all();
    for (int i = 0; i < 4300; i++) {
        void *block = new_block(bytes / 1024);
        MUST(release(block));
        if (i > 4096 && i % 32 == 0)
            usleep(30000);
    }
    print_since("unseen", before);
}

/* A call that is newer than the library's tables is looked up. */
static void unknown(void) {
    void *entry = NULL;
    CUstream one = new_stream();
    use(one, 1);
    MUST(DRIVER(cuGetProcAddress_v2)("cuStreamBeginUnheardOfCapture", &entry, 99000, 0, NULL));
    struct counts before = count_all();
    use(one, ROUNDS);
    print_since("unknown", before);
}

/* Until the reader of our output has seen what it wants. */
static void pause_here(void) {
    puts("pausing");
    fflush(stdout);
    getchar();
}

int main(int count, char **names) {
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"legacy", legacy},
                  {"created", created},
                  {"pairs", pairs},
                  {"blocking", blocking},
                  {"per_thread", per_thread},
                  {"second", second},
                  {"three", three},
                  {"burst", burst},
                  {"waited", waited},
                  {"captured", captured},
                  {"by_every_call", by_every_call},
                  {"programmatic", programmatic},
                  {"unseen", unseen},
                  {"unknown", unknown},
                  {"pause", pause_here}};
    choose_device(0);
    for (int i = 1; i < count; i++)
        for (size_t s = 0; s < sizeof scenes / sizeof scenes[0]; s++)
            if (strcmp(names[i], scenes[s].name) == 0)
                scenes[s].play();
    return 0;
}

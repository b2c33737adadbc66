/*
 * Scenes that the library has something to say about; argument: which.
 *
 *   second   a second context is made after the first allocation
 *   before   two contexts are there before the first allocation
 *   late     a block whose work is not over is freed while a stream captures, and another is asked
 *            for
 *   captured a stream has captured when another allocation needs more memory
 *   refused  the device is asked for nearly all that it has, 100 times
 *   past     the pool caches all that there is, and an array is made
 *   child    a forked child allocates
 *   lookups  entries are asked for by dlsym and by cuGetProcAddress
 *   pending  a block whose work is not over is freed, and another is asked for
 *   ends     the context is destroyed while a block lives in it
 *   siblings one context's pool caches what another one's allocation needs
 *   trim     the program asks the library to trim
 *   idle     a wholly free region stays so until standard input ends
 *   loop     a loop of allocations that repeats until standard input ends
 *   small    the same, of few bytes beside a large block
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/interpose/program.h"

#define MIB ((size_t)1 << 20)

static CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr block;
    CHECK(cuMemAlloc(&block, bytes));
    return block;
}

static void second(void) {
    CUcontext context;
    use_primary(0);
    allocate(MIB);
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
    allocate(MIB);
}

static void before(void) {
    CUcontext context;
    use_primary(0);
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
    allocate(MIB);
}

static void captured(void) {
    CUstream stream;
    CUgraph graph;
    use_primary(0);
    allocate(MIB);
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuStreamEndCapture(stream, &graph));
    allocate(100 * MIB);
}

static atomic_bool may_end;

static void CUDA_CB wait_until_it_may(void *unused) {
    (void)unused;
    while (!atomic_load(&may_end))
        usleep(100);
}

static void late(void) {
    CUstream busy, capturing;
    CUgraph graph;
    use_primary(0);
    CHECK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
    CUdeviceptr block = allocate(2 * MIB);
    CHECK(cuLaunchHostFunc(busy, wait_until_it_may, NULL));
    CHECK(cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuMemFree(block));
    CHECK(cuStreamEndCapture(capturing, &graph));
    allocate(2 * MIB);
    atomic_store(&may_end, true);
    CHECK(cuCtxSynchronize());
}

static void pending(void) {
    CUstream busy;
    use_primary(0);
    CHECK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    CUdeviceptr block = allocate(2 * MIB);
    CHECK(cuLaunchHostFunc(busy, wait_until_it_may, NULL));
    CHECK(cuMemFree(block));
    allocate(2 * MIB);
    atomic_store(&may_end, true);
    CHECK(cuCtxSynchronize());
}

static void refused(void) {
    CUdeviceptr block;
    use_primary(0);
    for (int i = 0; i < 100; i++)
        cuMemAlloc(&block, 900 * MIB);
}

static void past(void) {
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 16384, .Height = 8192, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4};
    use_primary(0);
    CHECK(cuMemFree(allocate(800 * MIB)));
    CHECK(cuArrayCreate(&array, &shape));
}

static void child(void) {
    int status = 1;
    use_primary(0);
    CHECK(cuMemFree(allocate(MIB)));
    pid_t pid = fork();
    if (pid == 0) {
        CUdeviceptr block;
        for (int i = 0; i < 10; i++)
            cuMemAlloc(&block, 64 * MIB);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("child %d\n", status);
}

static void lookups(void) {
    void *found;
    CUdriverProcAddressQueryResult answer;
    use_primary(0);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*mem_info)(size_t *, size_t *);
    *(void **)&mem_info = dlsym(library, "cuMemGetInfo_v2");
    size_t free_bytes, total;
    CHECK(mem_info(&free_bytes, &total));
    CHECK(cuGetProcAddress("cuMemFree", &found, 12000, 0, &answer));
    allocate(MIB);
    CHECK(cuGetProcAddress("cuMemFree", &found, 12000, 0, &answer));
    CHECK(cuGetProcAddress("cuIpcGetMemHandle", &found, 12000, 0, &answer));
}

static void ends(void) {
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
    allocate(MIB);
    CHECK(cuCtxDestroy(context));
}

static void siblings(void) {
    CUcontext context;
    use_primary(0);
    CHECK(cuMemFree(allocate(800 * MIB)));
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
    allocate(800 * MIB);
}

static void trim(void) {
    size_t (*call)(size_t);
    *(void **)&call = dlsym(RTLD_DEFAULT, "bfc_trim");
    use_primary(0);
    CHECK(cuMemFree(allocate(4 * MIB)));
    if (call)
        call(SIZE_MAX);
}

static void idle(void) {
    use_primary(0);
    CHECK(cuMemFree(allocate(4 * MIB)));
    while (getchar() != EOF)
        ;
}

/* Blocks of many sizes, so that a pool reserves more for them than a plan. */
static void repeat(size_t unit) {
    enum { BLOCKS = 12 };
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    CUdeviceptr blocks[BLOCKS];
    while (poll(&input, 1, 0) == 0) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = allocate(unit * (1 + i * 7 % BLOCKS));
            if (i % 3 == 2)
                CHECK(cuMemFree(blocks[i - 1]));
        }
        for (size_t i = 0; i < BLOCKS; i++)
            if (i % 3 != 1)
                CHECK(cuMemFree(blocks[i]));
    }
}

static void loop(void) {
    use_primary(0);
    repeat(MIB);
}

static void small(void) {
    use_primary(0);
    allocate(256 * MIB);
    repeat(512);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"second", second},   {"before", before}, {"late", late},
                  {"refused", refused}, {"past", past},     {"child", child},
                  {"lookups", lookups}, {"ends", ends},     {"siblings", siblings},
                  {"trim", trim},       {"idle", idle},     {"pending", pending},
                  {"loop", loop},       {"small", small},   {"captured", captured}};
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].play();
            return 0;
        }
    return 2;
}

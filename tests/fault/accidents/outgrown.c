/*
 * While one thread's free waits for a kernel, another allocates on a full device. The pool has more
 * than it needs, which may go back at that free; but until the free has waited, the memory must be
 * there for the other thread. So it must be if that thread submits a second kernel meanwhile: the
 * driver's free of the memory would wait for that one, too.
 */
#include <sys/wait.h>

#include "tests/conformance/gpu.h"

static CUcontext context;
static int has_freed; /* atomic */

static void *free_small(void *block) {
    MUST(cuCtxSetCurrent(context));
    MUST(release(block));
    __atomic_store_n(&has_freed, 1, __ATOMIC_RELEASE);
    return NULL;
}

static unsigned long long waits(void) {
    unsigned long long (*count)(const char *);
    *(void **)&count = dlsym(RTLD_DEFAULT, "sim_call_count");
    return count("blocked_waits");
}

/* Leaves two regions, of which only the second is idle, and a free behind it that looks at them.
 * Returns the block to be freed. */
static void *outgrow(size_t total) {
    void *small[3];
    for (int i = 0; i < 3; i++)
        small[i] = new_block(KIB);
    void *first = new_block(total / 4);
    MUST(release(first));
    new_block(total / 8);
    MUST(release(new_block(total / 2)));
    MUST(release(small[0]));
    MUST(release(small[1]));
    return small[2];
}

static volatile unsigned *flags; /* in host memory that kernels read */
static CUstream stream;

/* Submits a kernel that ends when flags[i] is 1. */
static void submit_waiting(int i) {
    CUdeviceptr mapped;
    unsigned one = 1;
    MUST(cuMemHostGetDevicePointer(&mapped, (void *)(uintptr_t)flags, 0));
    unsigned long long at = mapped + (unsigned)i * sizeof *flags;
    MUST(launch(stream, "wait_flag", (void *[]){&at, &one}));
}

/* Submits a second kernel behind the first, which then ends, and gives the free time to go on. */
static void go_on(void) {
    submit_waiting(1);
    flags[0] = 1;
    for (int i = 0; i < 100 && !__atomic_load_n(&has_freed, __ATOMIC_ACQUIRE); i++)
        usleep(1000);
}

static void play(const char *when, bool goes_on) {
    size_t free_bytes, total;
    pthread_t thread;
    void *block = NULL;
    use_device(0);
    MUST(cuCtxGetCurrent(&context));
    MUST(memory_info(&free_bytes, &total));
    void *last = outgrow(total);
    stream = new_stream();
    MUST(cuMemHostAlloc((void **)&flags, 2 * sizeof *flags, CU_MEMHOSTALLOC_DEVICEMAP));
    flags[0] = flags[1] = 0;
    unsigned long long before = waits();
    submit_waiting(0);
    pthread_create(&thread, NULL, free_small, last);
    while (!__atomic_load_n(&has_freed, __ATOMIC_ACQUIRE) && waits() == before)
        usleep(1000);
    if (goes_on)
        go_on();
    say(when, allocate(&block, total / 2 - 8 * MIB));
    flags[0] = flags[1] = 1;
    pthread_join(thread, NULL);
}

int main(void) {
    int status = 1;
    if (fork() == 0) {
        play("another thread allocates", false);
        exit(0);
    }
    wait(&status);
    play("another thread allocates behind a further kernel", true);
    return status;
}

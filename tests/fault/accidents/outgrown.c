/*
 * While one thread's free waits for a kernel, another allocates on a full device. The pool has more
 * than it needs, which may go back at that free; but until the free has waited, the memory must be
 * there for the other thread.
 */
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

/* Leaves two regions, of which only the second is idle, and a free behind it that looks at them. */
static void outgrow(size_t total) {
    void *small[3];
    for (int i = 0; i < 3; i++)
        small[i] = new_block(KIB);
    void *first = new_block(total / 4);
    MUST(release(first));
    new_block(total / 8);
    MUST(release(new_block(total / 2)));
    MUST(release(small[0]));
    MUST(release(small[1]));
    volatile unsigned *flag;
    CUdeviceptr mapped;
    unsigned one = 1;
    MUST(cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&mapped, (void *)(uintptr_t)flag, 0));
    unsigned long long at = mapped, before = waits();
    *flag = 0;
    MUST(launch(new_stream(), "wait_flag", (void *[]){&at, &one}));
    pthread_t thread;
    void *block = NULL;
    pthread_create(&thread, NULL, free_small, small[2]);
    while (!__atomic_load_n(&has_freed, __ATOMIC_ACQUIRE) && waits() == before)
        usleep(1000);
    say("another thread allocates", allocate(&block, total / 2 - 8 * MIB));
    *flag = 1;
    pthread_join(thread, NULL);
}

int main(void) {
    size_t free_bytes, total;
    use_device(0);
    MUST(cuCtxGetCurrent(&context));
    MUST(memory_info(&free_bytes, &total));
    outgrow(total);
    return 0;
}

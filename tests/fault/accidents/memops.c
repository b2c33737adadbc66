/*
 * SYNC_MEMOPS is of one allocation [D]: a copy from device to device, which does not wait for the
 * device otherwise, waits where it is set, and neither where it was cleared nor in what is
 * allocated when its block is free.
 */
#include "tests/conformance/gpu.h"

static const size_t bytes = 64 * KIB;
static void *from;
static CUstream stream;

static int set(void *block, unsigned value) {
    return (int)cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(block));
}

/* A copy behind a kernel that waits for the host, which goes on only if the copy does not wait. */
static void look(const char *what, void *block, bool waits) {
    unsigned *flag, wanted = 1;
    MUST(cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = waits;
    unsigned long long at = address(flag);
    MUST(launch(NULL, "wait_flag", (void *[]){&at, &wanted}));
    spin(NULL, 20);
    CUevent event;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(event, NULL));
    MUST(cuMemcpyDtoD(address(block), address(from), bytes));
    bool waited = cuEventQuery(event) == CUDA_SUCCESS;
    *(volatile unsigned *)flag = 1;
    MUST(synchronize());
    printf("%s: %s\n", what, waited ? "waits" : "does not wait");
    MUST(cuEventDestroy(event));
    MUST(cuMemFreeHost(flag));
}

int main(void) {
    use_device(0);
    from = new_block(bytes);
    void *a = new_block(bytes), *b = new_block(bytes);
    look("A at first", a, false);
    say("set A", set(a, 1));
    look("A", a, true);
    say("clear A", set(a, 0));
    look("A", a, false);
    say("set A", set(a, 1));
    say("set B", set(b, 1));
    say("clear A", set(a, 0));
    look("B", b, true);
    say("set A", set(a, 1));
    say("clear B", set(b, 0));
    say("free of a wrong address", release((char *)a + KIB));
    look("A", a, true);
    MUST(release(a));
    a = new_block(bytes);
    look("what comes after A", a, false);
    look("B", b, false);
    say("set A", set(a, 1));
    MUST(release_async(a, stream));
    MUST(synchronize());
    a = new_block(bytes);
    look("what comes after A", a, false);
    return 0;
}

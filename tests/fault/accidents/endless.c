/*
 * An allocation for which there is no room fails, pooled or not, although another thread allocates
 * and frees in the order of its stream without end, and a third stream's free awaits what this
 * thread does only after its answer. Before, the library was asked to give memory back, as by
 * another job.
 */
#include <stdatomic.h>

#define BFCPRELOAD_WEAK
#include "interpose/api/bfcpreload.h"
#include "tests/conformance/gpu.h"

enum { BATCH = 4 };
static const size_t bytes = 64 * KIB;
static atomic_bool over;

static void *go_on(void *unused) {
    choose_device(0);
    CUstream stream = new_stream();
    while (!atomic_load(&over)) {
        for (int i = 0; i < BATCH; i++)
            MUST(release_async(new_block(bytes), stream));
        MUST(cuStreamSynchronize(stream));
    }
    return unused;
}

static int take_other(size_t size) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    return (int)cuMemCreate(&handle, size, &what, 0);
}

int main(void) {
    size_t free_bytes, total;
    pthread_t thread;
    uint32_t *flag;
    CUdeviceptr at;
    void *unused;
    use_device(0);
    MUST(memory_info(&free_bytes, &total));
    hog(free_bytes - 64 * MIB);
    MUST(cuMemHostAlloc((void **)&flag, sizeof *flag, 0));
    *flag = 0;
    MUST(cuMemHostGetDevicePointer(&at, flag, 0));
    void *kept = new_block(24 * MIB), *awaited = new_block(bytes);
    CUstream held = new_stream();
    MUST(cuStreamWaitValue32(held, at, 1, CU_STREAM_WAIT_VALUE_EQ));
    MUST(release_async(awaited, held));
    if (bfc_trim) /* natively there is nobody to ask */
        bfc_trim(SIZE_MAX);
    pthread_create(&thread, NULL, go_on, NULL);
    usleep(50000);
    say("an allocation", allocate(&unused, 56 * MIB));
    say("memory past the pool", take_other(56 * MIB));
    atomic_store(&over, true);
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    MUST(release(kept));
    return 0;
}

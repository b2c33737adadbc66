/* cudaFreeAsync waits for what its stream has under way, and for no other stream [D]: a kernel of
 * another stream that waits for the host holds up neither the free nor the memory. */
#include "tests/conformance/gpu.h"

#include <stdatomic.h>

static const size_t bytes = 384 * MIB, small = MIB;

struct flag {
    atomic_uint *host;
    unsigned long long device;
};

static struct flag new_flag(void) {
    struct flag flag;
    CUdeviceptr mapped;
    void *host;
    MUST(DRIVER(cuMemHostAlloc)(&host, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(DRIVER(cuMemHostGetDevicePointer)(&mapped, host, 0));
    flag.host = host;
    flag.device = mapped;
    atomic_store(flag.host, 0);
    return flag;
}

/* A kernel in this stream ends when the flag is raised. */
static void hold_up(CUstream stream, struct flag *flag) {
    unsigned one = 1;
    MUST(launch(stream, "wait_flag", (void *[]){&flag->device, &one}));
}

/* Leaves the device so much. */
static void leave(size_t rest) {
    size_t free_bytes, total;
    MUST(release(new_block(1)));
    MUST(memory_info(&free_bytes, &total));
    hog(free_bytes - rest);
}

static void free_beside_a_stuck_stream(void) {
    struct flag flag = new_flag();
    CUstream stuck = new_stream(), idle = new_stream(), busy = new_stream();
    void *block = new_block(bytes);
    hold_up(stuck, &flag);
    puts("freed in an idle stream, another waits for the host");
    for (int round = 0; round < 3; round++) {
        say("  free", release_async(block, idle));
        say("  synchronize that stream", (int)DRIVER(cuStreamSynchronize)(idle));
        say("  malloc", allocate(&block, bytes));
    }
    puts("freed in a stream that then is waited for");
    slow_fill(busy, block, small, 1, 20);
    say("  free", release_async(block, busy));
    say("  free again", release_async(block, busy));
    say("  free again, in no stream's order", release(block));
    say("  synchronize the stream", (int)DRIVER(cuStreamSynchronize)(busy));
    say("  malloc", allocate(&block, bytes));
    fill(idle, block, small, 2);
    say("  synchronize the stream", (int)DRIVER(cuStreamSynchronize)(idle));
    puts("many frees in several streams");
    MUST(release_async(block, idle));
    MUST(DRIVER(cuStreamSynchronize)(idle));
    enum { COUNT = 300 };
    void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = new_block(small);
    for (int i = 0; i < COUNT; i++)
        MUST(release_async(blocks[i], i % 3 == 0 ? idle : i % 3 == 1 ? busy : NULL));
    atomic_store(flag.host, 1);
    say("  synchronize", synchronize());
    say("  malloc of all", allocate(&block, bytes));
    say("  free", release(block));
}

/* What still writes the block ends before it is anybody else's. */
static void keep_what_is_in_use(void) {
    struct flag flag = new_flag();
    CUstream slow = new_stream(), quick = new_stream(), third = new_stream();
    void *first = new_block(small), *second = new_block(small);
    puts("freed behind work in one stream, and beside it in another");
    hold_up(slow, &flag);
    fill(slow, first, small, 3);
    MUST(release_async(first, slow));
    MUST(release_async(second, quick));
    void *blocks[8];
    for (int i = 0; i < 8; i++) {
        blocks[i] = new_block(small);
        fill(third, blocks[i], small, 4);
    }
    MUST(DRIVER(cuStreamSynchronize)(third));
    atomic_store(flag.host, 1);
    MUST(synchronize());
    bool intact = true;
    for (int i = 0; i < 8; i++) {
        intact = intact && holds(blocks[i], small, 4);
        MUST(release(blocks[i]));
    }
    tell("  the later blocks are intact", intact);
}

static void free_into_captures(void) {
    CUgraph graph = NULL;
    CUstream stream = new_stream(), blocking;
    void *block = new_block(small);
    MUST(DRIVER(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
    puts("into streams while one captures");
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    say("  into that", release_async(block, stream));
    say("  into another", release_async(block, blocking));
    say("  again", release_async(block, blocking));
    say("  end of the capture", end_capture(stream, &graph));
    block = new_block(small);
    MUST(begin_capture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    say("  into the default stream, a blocking one captures",
        release_async(block, CU_STREAM_LEGACY));
    say("  end of that capture", end_capture(blocking, &graph));
    say("  free", release_async(block, blocking));
    MUST(synchronize());
}

static void free_into_a_stream_of_another_device(void) {
    void *block = new_block(small);
    choose_device(1);
    CUstream far = new_stream();
    choose_device(0);
    puts("into a stream of another device");
    say("  free", release_async(block, far));
    say("  again", release_async(block, far));
    choose_device(1);
    MUST(end_stream(far));
    MUST(synchronize());
    choose_device(0);
}

int main(void) {
    if (device_count() < 2)
        skip("two devices");
    use_device(0);
    leave(bytes + 64 * MIB);
    free_beside_a_stuck_stream();
    keep_what_is_in_use();
    free_into_captures();
    free_into_a_stream_of_another_device();
    return 0;
}

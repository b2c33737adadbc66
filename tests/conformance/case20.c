/* Memory of the runtime is freed by the driver, and the reverse: one kind of memory [D]. */
#include "tests/conformance/gpu.h"

int main(void) {
    CUdeviceptr at;
    use_device(0);
    void *block = new_block(1000);
    say("cuMemFree of cudaMalloc's", (int)DRIVER(cuMemFree)(address(block)));
    say("cudaFree of it again", release(block));
    MUST(DRIVER(cuMemAlloc)(&at, 1000));
    say("cudaFree of cuMemAlloc's", release(pointer_to(at)));
    say("cuMemFree of it again", (int)DRIVER(cuMemFree)(at));
    MUST(DRIVER(cuMemAlloc)(&at, 3 * MIB));
    say("cudaFree of a large one", release(pointer_to(at)));
    block = new_block(3 * MIB);
    say("cuMemFree of a large one", (int)DRIVER(cuMemFree)(address(block)));
    return 0;
}

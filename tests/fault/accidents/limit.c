/* BFC_LIMIT is of a process on a device: two contexts have it together, and give it to each other.
 */
#include "tests/conformance/gpu.h"

int main(void) {
    CUcontext context;
    size_t free_bytes, total;
    void *block = NULL, *other = NULL;
    use_device(0);
    say("one context takes two thirds", allocate(&block, 400 * MIB));
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    MUST(memory_info(&free_bytes, &total));
    printf("the other one is told of %zu MiB of %zu\n", free_bytes / MIB, total / MIB);
    say("it cannot have as much", allocate(&other, 400 * MIB));
    say("it can have the rest", allocate(&other, 200 * MIB));
    MUST(release(other));
    MUST(release(block));
    MUST(memory_info(&free_bytes, &total));
    printf("then it is told of %zu MiB of %zu\n", free_bytes / MIB, total / MIB);
    say("what was freed it can have", allocate(&block, 600 * MIB));
    MUST(cuCtxDestroy(context));
    say("and its end leaves it to the first", allocate(&block, 600 * MIB));
    return 0;
}

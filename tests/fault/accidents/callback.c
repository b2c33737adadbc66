/* A host function in a stream may not call CUDA [D]: it is told so, or, where nothing of the driver
 * is needed, served; nobody waits for ever, and the stream goes on. */
#include "tests/conformance/gpu.h"

static void *kept;

static bool is_answer(int code) {
    return code == 0 || code == 800;
}

static void call_back(void *unused) {
    void *block = NULL;
    (void)unused;
    int code = allocate(&block, 1000);
    tell("malloc is served or not permitted", is_answer(code));
    if (code == 0)
        tell("free is served or not permitted", is_answer(release(block)));
    else
        tell("free is served or not permitted", true);
    tell("free of another block is not permitted or served", is_answer(release(kept)));
}

int main(void) {
    use_device(0);
    CUstream stream = new_stream();
    kept = new_block(1000);
    MUST(release(new_block(1000)));
    spin(stream, 5);
    MUST(cuLaunchHostFunc(stream, call_back, NULL));
    fill(stream, new_block(1000), 1000, 1);
    say("synchronize", synchronize());
    return 0;
}

/* A free returns errors of earlier asynchronous work [D], also the first that anybody sees. */
#include "tests/conformance/gpu.h"

int main(void) {
    unsigned long long nowhere = 64;
    unsigned one = 1;
    use_device(0);
    void *block = new_block(4096);
    CUstream stream = new_stream();
    spin(stream, 10);
    MUST(launch(stream, "poke", (void *[]){&nowhere, &one}));
    say("free", release(block));
    say("synchronize", synchronize());
    return 0;
}

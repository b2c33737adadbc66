/* Processes of which each leaves too little cached memory behind for the other: they have to give
 * it back to each other all the time, whatever else happens to them. What one cannot have at once,
 * since another was killed and is not gone yet, it can have a moment later. */
#include "tests/conformance/gpu.h"

enum { ROUNDS = 150, PATIENCE_MS = 20000 };

static void *insist(size_t bytes) {
    void *block = NULL;
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        int code = allocate(&block, bytes);
        if (code != CUDA_ERROR_OUT_OF_MEMORY) {
            MUST(code);
            return block;
        }
        usleep(1000);
    }
    puts("memory never came back");
    exit(1);
}

int main(void) {
    bool intact = true;
    use_device(0);
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = (150 + (size_t)round * 37 % 200) * MIB;
        void *block = insist(bytes);
        slow_fill(NULL, block, 1000, (unsigned)round, 1);
        intact = intact && holds(block, 1000, (unsigned)round);
        MUST(release(block));
    }
    tell("all blocks were intact", intact);
    return 0;
}

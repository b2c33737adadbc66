/* After an illegal access every call answers with its code [D: the context is unusable]. */
#include "tests/conformance/gpu.h"

int main(void) {
    void *pointer = NULL;
    unsigned long long nowhere = 64;
    unsigned one = 1;
    use_device(0);
    void *kept = new_block(4096), *freed = new_block(4096);
    MUST(release(freed));
    MUST(launch(NULL, "poke", (void *[]){&nowhere, &one}));
    say("synchronize", synchronize());
    say("free", release(kept));
    say("malloc", allocate(&pointer, 4096));
    say("malloc of more than the pool has", allocate(&pointer, 64 * MIB));
    say("free again", release(kept));
    printf("~ free(0): %d\n", release(NULL));
    return 0;
}

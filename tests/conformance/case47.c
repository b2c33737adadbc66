/* A third library calls the next definition of an allocation function (RTLD_NEXT), as interposers
 * do: it reaches the same memory. */
#include "tests/conformance/gpu.h"

int next_allocate(void **pointer, size_t bytes);
int next_release(void *pointer);

int main(void) {
    void *pointer = NULL;
    use_device(0);
    say("malloc by the next definition", next_allocate(&pointer, 4096));
    fill(NULL, pointer, 4096, 8);
    MUST(synchronize());
    tell("it works", holds(pointer, 4096, 8));
    say("free of it here", release(pointer));
    say("free of it by the next definition", next_release(pointer));
    pointer = new_block(3 * MIB);
    say("free of ours by the next definition", next_release(pointer));
    say("free of it here", release(pointer));
    return 0;
}

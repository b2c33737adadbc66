/*
 * An allocation for which there is no room is refused soon: the pages that it has taken in vain and
 * given back are no memory that has come since the device was asked.
 */
#include "tests/conformance/gpu.h"

enum { LIVE = 20, REFUSALS = 3, CALLS_MOST = 1000 };

static unsigned long long creations(void) {
    unsigned long long (*count)(const char *);
    *(void **)&count = dlsym(RTLD_DEFAULT, "sim_call_count");
    return count("cuMemCreate");
}

int main(void) {
    void *block;
    use_device(0);
    for (int i = 0; i < LIVE; i++)
        new_block(10 * MIB);
    unsigned long long before = creations();
    for (int i = 0; i < REFUSALS; i++)
        say("more than the device has left", allocate(&block, 100 * MIB));
    tell("few pages were asked for", creations() - before < CALLS_MOST);
    return 0;
}

/* free(0) as the first call: with the runtime it makes the context [D]; the driver wants cuInit
 * before anything [D]. */
#include "tests/conformance/gpu.h"

int main(void) {
    say("free(0)", release(NULL));
#ifndef ROUTE_DRIVER
    unsigned flags;
    int active = 0;
    MUST(DRIVER(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    tell("the primary context is active", active != 0);
    say("free(0) again", release(NULL));
#endif
    use_device(0);
    void *block = new_block(100);
    say("free of a block", release(block));
    return 0;
}

/*
 * A context with access to another's memory makes an illegal access. That is its own failure: the
 * other context works on, natively and with the library, also after the failed one has ended.
 */
#include "tests/conformance/gpu.h"

enum { FREES = 100 };
static const size_t bytes = 1 * MIB;
static CUcontext owner, peer;

static void churn(const char *what) {
    int failed = 0;
    MUST(cuCtxSetCurrent(owner));
    for (int i = 0; i < FREES; i++) {
        void *block = NULL;
        int code = allocate(&block, bytes + (size_t)i * KIB);
        if (code == 0)
            code = (int)cuMemsetD8Async(address(block), (unsigned char)i, bytes, NULL);
        if (code == 0)
            code = release(block);
        failed += code != 0;
    }
    printf("%s: %d of %d failed\n", what, failed, FREES);
    say("waiting for the context", synchronize());
}

int main(void) {
    unsigned long long nowhere = 64;
    unsigned one = 1;
    if (device_count() < 2)
        skip("two devices");
    use_device(0);
    MUST(cuCtxGetCurrent(&owner));
    void *block = new_block(bytes);
    MUST(cuCtxCreate(&peer, NULL, 0, 1));
    MUST(cuCtxEnablePeerAccess(owner, 0));
    spin(NULL, 20);
    MUST(cuCtxSetCurrent(owner));
    say("free under a peer's work", release(block));
    MUST(cuCtxSetCurrent(peer));
    MUST(launch(NULL, "poke", (void *[]){&nowhere, &one}));
    say("the peer's failure", synchronize());
    churn("beside a failed peer");
    MUST(cuCtxSetCurrent(owner));
    cuCtxDestroy(peer);
    churn("after its end");
    return 0;
}

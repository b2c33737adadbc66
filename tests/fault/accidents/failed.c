/* What a context that has failed answers to allocations, once the program knows of the failure. */
#include "tests/conformance/gpu.h"

enum { TRIES = 500 };

static void churn(const char *what) {
    int succeeded = 0;
    void *block;
    for (int i = 0; i < TRIES; i++)
        succeeded += allocate(&block, 4096) == 0;
    printf("%s: %d of %d succeeded\n", what, succeeded, TRIES);
}

int main(void) {
    unsigned long long nowhere = 64;
    unsigned one = 1;
    CUcontext context, other;
    use_device(0);
    MUST(cuCtxGetCurrent(&context));
    CUstream stream = new_stream();
    void *kept = new_block(8 * MIB);
    CUipcMemHandle handle;
    MUST(release(new_block(8 * MIB)));
    MUST(cuCtxCreate(&other, NULL, 0, 0));
    MUST(release(new_block(8 * MIB)));
    MUST(cuCtxSetCurrent(context));
    MUST(launch(stream, "poke", (void *[]){&nowhere, &one}));
    say("waiting for the stream", (int)cuStreamSynchronize(stream));
    churn("in the failed context");
    say("an IPC handle of what it has", (int)cuIpcGetMemHandle(&handle, (CUdeviceptr)kept));
    MUST(cuCtxSetCurrent(other));
    churn("in another one of its device");
    return 0;
}

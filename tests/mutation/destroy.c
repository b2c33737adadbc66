/*
 * A context is destroyed, and another one reset, while the helper thread is giving memory of it
 * back: no call of ours uses a context whose end has begun [D] (cuCtxDestroy).
 */
#include "tests/conformance/helper.h"

int main(void) {
    CUcontext context;
    use_device(0);
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    give_idle_memory();
    MUST(cuCtxDestroy(context));
    use_device(0);
    give_idle_memory();
    MUST(cuDevicePrimaryCtxReset(0));
    printf("calls in contexts whose end had begun: %llu\n", counted("trespasses"));
    return 0;
}

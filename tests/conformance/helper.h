/*
 * Meeting the library's helper thread in the middle of a call, over the stand-in GPU: SIM_LATENCY
 * makes its frees slow, BFC_TRIM_IDLE makes it free. Natively nobody frees, and none is waited for
 * long.
 */
#ifndef BFC_TESTS_CONFORMANCE_HELPER_H
#define BFC_TESTS_CONFORMANCE_HELPER_H

#include "tests/conformance/gpu.h"

/* A count of the stand-in's; 0: it is not the stand-in. */
static UNUSED unsigned long long counted(const char *name) {
    unsigned long long (*counter)(const char *);
    *(void **)&counter = dlsym(RTLD_DEFAULT, "sim_call_count");
    return counter ? counter(name) : 0;
}

/* Leaves memory idle, until the helper has begun to give it back. */
static UNUSED void give_idle_memory(void) {
    enum { BLOCKS = 4, PATIENCE_MS = 1000 };
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = new_block(64 * MIB);
    for (int i = 0; i < BLOCKS; i++)
        MUST(release(blocks[i]));
    unsigned long long before = counted("cuMemFree_v2");
    for (int ms = 0; ms < PATIENCE_MS && counted("cuMemFree_v2") == before; ms++)
        usleep(1000);
}

#endif

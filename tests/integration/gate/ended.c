/*
 * A context ends by a call without a hook, and the driver may give the handles of its streams to
 * streams of the next context. So what was known of the streams ends, too: the next free takes a
 * fence, although the legacy stream and one blocking stream counted as one before. Preloaded in
 * mode lazy; natively nothing is recorded.
 */
#define ROUTE_DRIVER
#include "tests/conformance/gpu.h"

static const size_t bytes = MIB;

int main(void) {
    CUresult (*end_unseen)(CUcontext);
    void (*(*entry)(const char *))(void);
    unsigned long long (*count)(const char *);
    CUcontext first, second;
    CUstream blocking;
    *(void **)&entry = dlsym(RTLD_DEFAULT, "sim_private_entry");
    *(void **)&count = dlsym(RTLD_DEFAULT, "sim_call_count");
    end_unseen = (CUresult(*)(CUcontext))entry("cuCtxDestroy");
    MUST(cuInit(0));
    MUST(CREATE_CONTEXT(&first, 0));
    MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    void *block = new_block(bytes);
    fill(NULL, block, bytes, 1);
    fill(blocking, block, bytes, 2);
    MUST(end_unseen(first));
    MUST(CREATE_CONTEXT(&second, 0));
    block = new_block(bytes);
    fill(NULL, block, bytes, 1);
    unsigned long long before = count("event_records");
    MUST(release(block));
    unsigned long long records = count("event_records") - before;
    printf("records %llu\n", records);
    return records != 1;
}

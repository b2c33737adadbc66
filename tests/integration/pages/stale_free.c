/*
 * A primary context ends by calls that no hook sees, and is there again. While another thread,
 * which has found that out, gives back the pages of the pool, a free of a block that went with the
 * context fails as it does natively.
 */
#include <dlfcn.h>

#include "tests/conformance/gpu.h"

static CUcontext context;
static bool gives_back, has_freed;
static __thread bool is_finder;

static void set(bool *flag) {
    __atomic_store_n(flag, true, __ATOMIC_SEQ_CST);
}

static void await(const bool *flag) {
    while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST))
        usleep(1000);
}

static void stop_at_pages(const char *call) {
    if (!is_finder || strncmp(call, "cuMemUnmap", 10) != 0)
        return;
    set(&gives_back);
    await(&has_freed);
}

static void *find_out(void *unused) {
    size_t free_bytes, total;
    (void)unused;
    is_finder = true;
    MUST(DRIVER(cuCtxSetCurrent)(context));
    MUST(memory_info(&free_bytes, &total));
    set(&gives_back); /* natively there is nothing to give back */
    return NULL;
}

int main(void) {
    void (*(*private_call)(const char *))(void);
    void (*begin)(void (*)(const char *));
    CUresult (*release_unseen)(CUdevice), (*retain_unseen)(CUcontext *, CUdevice);
    pthread_t thread;
    use_device(0);
    void *block = new_block(MIB);
    *(void **)&private_call = dlsym(RTLD_DEFAULT, "sim_private_call");
    *(void **)&begin = dlsym(RTLD_DEFAULT, "sim_tool_watch");
    release_unseen = (CUresult(*)(CUdevice))private_call("cuDevicePrimaryCtxRelease");
    retain_unseen = (CUresult(*)(CUcontext *, CUdevice))private_call("cuDevicePrimaryCtxRetain");
    MUST(release_unseen(0));
    MUST(retain_unseen(&context, 0));
    begin(stop_at_pages);
    pthread_create(&thread, NULL, find_out, NULL);
    await(&gives_back);
    say("a free of what went with the context", (int)release(block));
    set(&has_freed);
    pthread_join(thread, NULL);
    begin(NULL);
    return 0;
}

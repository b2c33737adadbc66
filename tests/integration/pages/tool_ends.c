/*
 * A context ends while another thread makes pages for its pool, and meanwhile, in the middle of a
 * call for these pages, that thread's tool makes a context of its own: neither waits for ever.
 */
#include <dlfcn.h>

#include "tests/conformance/gpu.h"

static CUcontext context;
static bool is_grower, destroys, has_made; /* is_grower: of each thread */
static pthread_t grower;

static void set(bool *flag) {
    __atomic_store_n(flag, true, __ATOMIC_SEQ_CST);
}

static bool is_set(const bool *flag) {
    return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

/* The thread that destroys the context must be far enough to wait for the other one. */
static void make_context(const char *call) {
    CUcontext made;
    if (strncmp(call, "cuCtxDestroy", 12) == 0)
        set(&destroys);
    if (strncmp(call, "cuMem", 5) != 0 || !is_set(&is_grower) ||
        !pthread_equal(pthread_self(), grower) || is_set(&has_made))
        return;
    set(&has_made);
    while (!is_set(&destroys))
        usleep(1000);
    usleep(300 * 1000);
    MUST(CREATE_CONTEXT(&made, 0));
    MUST(DRIVER(cuCtxDestroy)(made));
}

static void *grow(void *unused) {
    void *block;
    (void)unused;
    MUST(DRIVER(cuCtxSetCurrent)(context));
    grower = pthread_self();
    set(&is_grower);
    allocate(&block, 200 * MIB);
    return NULL;
}

int main(void) {
    void (*begin)(void (*)(const char *));
    pthread_t thread;
    use_device(0);
    MUST(CREATE_CONTEXT(&context, 0));
    new_block(MIB);
    *(void **)&begin = dlsym(RTLD_DEFAULT, "sim_tool_watch");
    begin(make_context);
    pthread_create(&thread, NULL, grow, NULL);
    while (!is_set(&has_made))
        usleep(1000);
    say("the context is destroyed", (int)DRIVER(cuCtxDestroy)(context));
    pthread_join(thread, NULL);
    begin(NULL);
    printf("both threads go on\n");
    return 0;
}

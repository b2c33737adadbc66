/*
 * The current context changes by calls that no hook sees, between allocations and frees by the
 * runtime or the driver: each allocation is in the context that is current then, also in one that
 * has got the handle of an ended one, and frees go by their pointers.
 */
#include "tests/conformance/gpu.h"

enum { ROUNDS = 20 };
static const size_t bytes = MIB;

static CUresult (*enter)(CUcontext), (*retain)(CUcontext *, CUdevice), (*leave)(CUdevice);

static bool find_private_calls(void) {
    void (*(*private_call)(const char *))(void);
    *(void **)&private_call = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "sim_private_call");
    if (!private_call)
        return false;
    enter = (CUresult(*)(CUcontext))private_call("cuCtxSetCurrent");
    retain = (CUresult(*)(CUcontext *, CUdevice))private_call("cuDevicePrimaryCtxRetain");
    leave = (CUresult(*)(CUdevice))private_call("cuDevicePrimaryCtxRelease");
    return true;
}

static bool is_in(const void *block, CUcontext context) {
    CUcontext owner = NULL;
    MUST(DRIVER(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address(block)));
    return owner == context;
}

static bool keeps(void *block, unsigned value) {
    fill(NULL, block, bytes, value);
    return holds(block, bytes, value);
}

static void use_twice(void) {
    for (int i = 0; i < 2; i++)
        MUST(release(new_block(bytes)));
}

/* Twice in each context, so that the second time is served the short way. */
static void change(CUcontext first, CUcontext other) {
    int misplaced = 0, broken = 0, refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        void *here = new_block(bytes);
        MUST(enter(other));
        void *there = new_block(bytes);
        misplaced += !is_in(here, first) + !is_in(there, other);
        broken += !keeps(there, 1);
        use_twice();
        refused += release(here) != 0;
        void *second = new_block(bytes);
        misplaced += !is_in(second, other);
        MUST(enter(first));
        refused += (release(there) != 0) + (release(second) != 0);
        use_twice();
    }
    printf("contexts in turn: %d misplaced, %d broken, %d refused\n", misplaced, broken, refused);
}

/* The primary context ends, and is there again, with what may be the same handle. */
static void come_back(void) {
    int broken = 0, refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        CUcontext primary;
        MUST(retain(&primary, 0));
        MUST(enter(primary));
        use_twice();
        void *block = new_block(bytes);
        broken += !keeps(block, 2);
        refused += release(block) != 0;
        MUST(leave(0));
    }
    printf("a context that comes back: %d broken, %d refused\n", broken, refused);
}

int main(void) {
    CUcontext first, other;
    use_device(0);
    if (!find_private_calls())
        skip("a driver whose private calls are known");
    use_twice();
    MUST(DRIVER(cuCtxGetCurrent)(&first));
    MUST(CREATE_CONTEXT(&other, 0));
    use_twice();
    MUST(enter(first));
    change(first, other);
    MUST(DRIVER(cuCtxDestroy)(other));
    MUST(leave(0));
    come_back();
    return 0;
}

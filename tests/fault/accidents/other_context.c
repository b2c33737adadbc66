/*
 * Work of one context on memory of another, without peer access: copies reach it all the same [D].
 * A block is freed under slow work of its context and allocated again; natively it may then be used
 * by any context at once, so what a copy in another context's stream writes there stays.
 */
#include "tests/conformance/gpu.h"

enum { OLD = 1, NEW = 2, SLOW_MS = 25 };

/* As large as the pool's first region, so that the block is had again at once, or not at all. */
static const size_t bytes = 2 * MIB;

static CUcontext owner, other;
static CUstream own, foreign;
static void *source; /* holds NEW, in the other context */

/* ---- ways to copy ---- */

static void copy_peer(void *block) {
    MUST(cuMemcpyPeerAsync(address(block), owner, address(source), other, bytes, foreign));
}

static void copy_plainly(void *block) {
    MUST(cuMemcpyAsync(address(block), address(source), bytes, foreign));
}

static CUDA_MEMCPY3D shape(void *block) {
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = address(source),
                           .srcPitch = KIB,
                           .srcHeight = bytes / KIB,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = address(block),
                           .dstPitch = KIB,
                           .dstHeight = bytes / KIB,
                           .WidthInBytes = KIB,
                           .Height = bytes / KIB,
                           .Depth = 1};
}

static void copy_by_graph(void *block) {
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_MEMCPY3D copy = shape(block);
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, other));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, foreign));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* ---- scenes ---- */

static void *allocate_under_work(void) {
    MUST(cuCtxSetCurrent(owner));
    void *block = new_block(bytes);
    slow_fill(own, block, bytes, OLD, SLOW_MS);
    MUST(release(block));
    return new_block(bytes);
}

static void enter_other(void) {
    MUST(cuCtxSetCurrent(other));
    MUST(cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING));
    source = new_block(bytes);
    fill(foreign, source, bytes, NEW);
    MUST(synchronize());
}

static void finish(const char *what, void *block) {
    MUST(cuStreamSynchronize(foreign));
    MUST(cuCtxSetCurrent(owner));
    MUST(synchronize());
    tell(what, holds(block, bytes, NEW));
    MUST(release(block));
}

/* Of what a device without peer access copies only cuMemcpyPeerAsync reaches pages: docs/tuning.md.
 * Other scenes are left out then. */
static bool reaches(void (*copy)(void *)) {
    const char *backing = getenv("BFC_BACKING");
    return copy == copy_peer || !backing || strcmp(backing, "pages") != 0;
}

static void look(const char *what, void (*copy)(void *)) {
    if (!reaches(copy)) {
        tell(what, true);
        return;
    }
    void *block = allocate_under_work();
    MUST(cuCtxSetCurrent(other));
    copy(block);
    finish(what, block);
}

/* What is copied out is what was copied in. */
static void look_at_source(void) {
    void *block = allocate_under_work();
    MUST(cuCtxSetCurrent(other));
    void *result = new_block(bytes);
    copy_peer(block);
    spin(foreign, 2 * SLOW_MS);
    MUST(cuMemcpyPeerAsync(address(result), other, address(block), owner, bytes, foreign));
    MUST(cuStreamSynchronize(foreign));
    tell("a block that is a copy's source is intact", holds(result, bytes, NEW));
    MUST(release(result));
    MUST(cuCtxSetCurrent(owner));
    MUST(release(block));
}

/*
 * NVIDIA's runtime has private ways to the driver: a context may be made, and made current, by no
 * call that has a name. The stand-in has such ways too; elsewhere the scene is left out.
 */
static void look_at_unseen(void) {
    void (*(*private_call)(const char *))(void);
    CUresult (*retain)(CUcontext *, CUdevice), (*enter)(CUcontext), (*let_go)(CUdevice);
    void *staged;
    const char *what = "a block is intact under a context that was made unseen";
    *(void **)&private_call = dlsym(RTLD_DEFAULT, "sim_private_call");
    if (!private_call || !reaches(NULL)) {
        tell(what, true);
        return;
    }
    retain = (CUresult(*)(CUcontext *, CUdevice))private_call("cuDevicePrimaryCtxRetain");
    enter = (CUresult(*)(CUcontext))private_call("cuCtxSetCurrent");
    let_go = (CUresult(*)(CUdevice))private_call("cuDevicePrimaryCtxRelease");
    MUST(retain(&other, 1));
    MUST(enter(other));
    MUST(cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAllocHost(&staged, bytes));
    memset(staged, NEW, bytes);
    MUST(enter(owner));
    void *block = allocate_under_work();
    MUST(enter(other));
    MUST(cuMemcpyHtoDAsync(address(block), staged, bytes, foreign));
    finish(what, block);
    MUST(let_go(1));
}

int main(void) {
    if (device_count() < 2)
        skip("two devices");
    use_device(0);
    MUST(cuCtxGetCurrent(&owner));
    own = new_stream();
    kernel("slow_fill");

    /* The other context begins when the block has been handed out. */
    void *block = allocate_under_work();
    MUST(cuCtxCreate(&other, NULL, 0, 0));
    enter_other();
    copy_peer(block);
    finish("a block is intact under a later context of its device", block);
    MUST(cuCtxDestroy(other));

    look_at_unseen();

    block = allocate_under_work();
    MUST(cuDevicePrimaryCtxRetain(&other, 1));
    enter_other();
    copy_peer(block);
    finish("a block is intact under a later context of another device", block);

    /* From here on there are two. */
    look("a block is intact under cuMemcpyPeerAsync", copy_peer);
    look("a block is intact under cuMemcpyAsync", copy_plainly);
    look("a block is intact under a graph's copy", copy_by_graph);
    look_at_source();
    return 0;
}

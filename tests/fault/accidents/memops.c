/*
 * SYNC_MEMOPS is of one allocation [D]: synchronous copies and sets, which do not all wait for the
 * device otherwise, wait where it is set: neither beside it, nor where it was cleared, nor in what
 * is allocated when its block is free.
 */
#include "tests/conformance/gpu.h"

static const size_t bytes = 64 * KIB;
static void *from, *other;
static CUarray array;
static CUstream stream;

static int set(void *block, unsigned value) {
    return (int)cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(block));
}

/* ---- every call ---- */

typedef void function(void);

static function *function_of(const char *name) {
    function *found;
    *(void **)&found = dlsym(RTLD_DEFAULT, name);
    return found;
}

static CUresult copy_line(function *call, CUdeviceptr to, CUdeviceptr source) {
    return ((CUresult(*)(CUdeviceptr, CUdeviceptr, size_t))call)(to, source, KIB);
}

static CUresult copy_peer(function *call, CUdeviceptr to, CUdeviceptr source) {
    CUcontext here;
    MUST(cuCtxGetCurrent(&here));
    return ((CUresult(*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t))call)(
        to, here, source, here, KIB);
}

static CUresult copy_to_array(function *call, CUdeviceptr to, CUdeviceptr source) {
    (void)to;
    return ((CUresult(*)(CUarray, size_t, CUdeviceptr, size_t))call)(array, 0, source, KIB);
}

static CUresult copy_from_array(function *call, CUdeviceptr to, CUdeviceptr source) {
    (void)source;
    return ((CUresult(*)(CUdeviceptr, CUarray, size_t, size_t))call)(to, array, 0, KIB);
}

static CUresult copy_plane(function *call, CUdeviceptr to, CUdeviceptr source) {
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = source,
                          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .dstDevice = to,
                          .WidthInBytes = KIB,
                          .Height = 1};
    return ((CUresult(*)(const CUDA_MEMCPY2D *))call)(&copy);
}

static CUresult copy_volume(function *call, CUdeviceptr to, CUdeviceptr source) {
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = source,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = to,
                          .WidthInBytes = KIB,
                          .Height = 1,
                          .Depth = 1};
    return ((CUresult(*)(const CUDA_MEMCPY3D *))call)(&copy);
}

static CUresult copy_peer_volume(function *call, CUdeviceptr to, CUdeviceptr source) {
    CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = source,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = to,
                               .WidthInBytes = KIB,
                               .Height = 1,
                               .Depth = 1};
    MUST(cuCtxGetCurrent(&copy.srcContext));
    copy.dstContext = copy.srcContext;
    return ((CUresult(*)(const CUDA_MEMCPY3D_PEER *))call)(&copy);
}

static CUresult set_8(function *call, CUdeviceptr to, CUdeviceptr source) {
    (void)source;
    return ((CUresult(*)(CUdeviceptr, unsigned char, size_t))call)(to, 1, KIB);
}

static CUresult set_16(function *call, CUdeviceptr to, CUdeviceptr source) {
    (void)source;
    return ((CUresult(*)(CUdeviceptr, unsigned short, size_t))call)(to, 1, KIB);
}

static CUresult set_32(function *call, CUdeviceptr to, CUdeviceptr source) {
    (void)source;
    return ((CUresult(*)(CUdeviceptr, unsigned, size_t))call)(to, 1, KIB);
}

static CUresult set_rows_8(function *call, CUdeviceptr to, CUdeviceptr source) {
    (void)source;
    return ((CUresult(*)(CUdeviceptr, size_t, unsigned char, size_t, size_t))call)(to, KIB, 1, 64,
                                                                                   2);
}

static CUresult set_rows_16(function *call, CUdeviceptr to, CUdeviceptr source) {
    (void)source;
    return ((CUresult(*)(CUdeviceptr, size_t, unsigned short, size_t, size_t))call)(to, KIB, 1, 64,
                                                                                    2);
}

static CUresult set_rows_32(function *call, CUdeviceptr to, CUdeviceptr source) {
    (void)source;
    return ((CUresult(*)(CUdeviceptr, size_t, unsigned, size_t, size_t))call)(to, KIB, 1, 64, 2);
}

enum { WRITES = 1, READS = 2 };

static const struct call {
    const char *name;
    CUresult (*make)(function *, CUdeviceptr, CUdeviceptr);
    unsigned of; /* device memory */
} calls[] = {
    {"cuMemcpy", copy_line, WRITES | READS},
    {"cuMemcpyDtoD_v2", copy_line, WRITES | READS},
    {"cuMemcpyPeer", copy_peer, WRITES | READS},
    {"cuMemcpyDtoA_v2", copy_to_array, READS},
    {"cuMemcpyAtoD_v2", copy_from_array, WRITES},
    {"cuMemcpy2D_v2", copy_plane, WRITES | READS},
    {"cuMemcpy2DUnaligned_v2", copy_plane, WRITES | READS},
    {"cuMemcpy3D_v2", copy_volume, WRITES | READS},
    {"cuMemcpy3DPeer", copy_peer_volume, WRITES | READS},
    {"cuMemsetD8_v2", set_8, WRITES},
    {"cuMemsetD16_v2", set_16, WRITES},
    {"cuMemsetD32_v2", set_32, WRITES},
    {"cuMemsetD2D8_v2", set_rows_8, WRITES},
    {"cuMemsetD2D16_v2", set_rows_16, WRITES},
    {"cuMemsetD2D32_v2", set_rows_32, WRITES},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* ---- looking ---- */

/* A call behind a kernel that waits for the host, which goes on only if the call does not wait. */
static bool waits(const struct call *call, const char *name, void *to, void *source, bool wanted) {
    unsigned *flag, one = 1;
    MUST(cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = wanted;
    unsigned long long at = address(flag);
    MUST(launch(NULL, "wait_flag", (void *[]){&at, &one}));
    spin(NULL, 20);
    CUevent event;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(event, NULL));
    MUST(call->make(function_of(name), address(to), address(source)));
    bool waited = cuEventQuery(event) == CUDA_SUCCESS;
    *(volatile unsigned *)flag = 1;
    MUST(synchronize());
    MUST(cuEventDestroy(event));
    MUST(cuMemFreeHost(flag));
    return waited;
}

static void look(const char *what, void *block, bool wanted) {
    static const struct call copy = {"cuMemcpyDtoD_v2", copy_line, WRITES | READS};
    bool waited = waits(&copy, copy.name, block, from, wanted);
    printf("%s: %s\n", what, waited ? "waits" : "does not wait");
}

static void look_at_call(const struct call *call, const char *ending, void *block) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", call->name, ending);
    bool writes = call->of & WRITES, reads = call->of & READS;
    if (writes && !waits(call, name, block, from, true))
        printf("%s does not wait for what it writes\n", name);
    if (reads && !waits(call, name, other, block, true))
        printf("%s does not wait for what it reads\n", name);
    if (waits(call, name, other, from, false))
        printf("%s waits\n", name);
}

static void look_at_calls(void *block) {
    const CUDA_ARRAY_DESCRIPTOR line = {
        .Width = KIB, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    MUST(cuArrayCreate(&array, &line));
    other = new_block(bytes);
    for (int i = 0; i < CALLS; i++) {
        look_at_call(&calls[i], "", block);
        look_at_call(&calls[i], "_ptds", block);
    }
    MUST(release(other));
    MUST(cuArrayDestroy(array));
}

/* Tokens for a network card, which only what cudaMalloc gave has: asking sets SYNC_MEMOPS. */
static void ask_for_tokens(void *block, void *beside) {
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
    bool has_any = cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS,
                                         address(block)) == CUDA_SUCCESS;
    const char *pages = getenv("BFC_BACKING");
    if (!has_any && !(pages && strcmp(pages, "pages") == 0))
        printf("no tokens\n");
    if (!has_any)
        MUST(set(block, 1));
    look("what has tokens", block, true);
    look("what lies beside it", beside, false);
    say("clear it", set(block, 0));
    look("what had tokens", block, false);
}

int main(void) {
    use_device(0);
    from = new_block(bytes);
    void *a = new_block(bytes), *b = new_block(bytes);
    look("A at first", a, false);
    say("set A", set(a, 1));
    look("A", a, true);
    look("B beside A", b, false);
    look_at_calls(a);
    say("clear A", set(a, 0));
    look("A", a, false);
    say("set A", set(a, 1));
    say("set B", set(b, 1));
    say("clear A", set(a, 0));
    look("A beside B", a, false);
    look("B", b, true);
    say("set A", set(a, 1));
    say("clear B", set(b, 0));
    say("free of a wrong address", release((char *)a + KIB));
    look("A", a, true);
    MUST(release(a));
    a = new_block(bytes);
    look("what comes after A", a, false);
    look("B", b, false);
    say("set A", set(a, 1));
    MUST(release_async(a, stream));
    MUST(synchronize());
    a = new_block(bytes);
    look("what comes after A", a, false);
    ask_for_tokens(a, b);
    return 0;
}

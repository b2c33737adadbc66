// Allocations of every kind that goes past the pool: preloaded, the segment counts each of them.
// The output does not say so, since natively it must be the same; a wrong count ends with exit
// status 1. Over a driver whose device is full (routes/full) what the pool caches goes back first.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/driver/memory_needs.h"
#include "layout/segment.h"
#include "tests/integration/routes/route.h"

static void *libcuda;
static uint64_t calls[BFC_BYPASS_KINDS], bytes[BFC_BYPASS_KINDS];

static int (*allocate)(uint64_t *pointer, size_t bytes);
static int (*release)(uint64_t pointer);
static bool is_full; // the driver of routes/full

// Leaves the pool with so much cached that nothing else fits.
static void fill(void) {
    uint64_t pointer = 0;
    if (!is_full)
        return;
    if (allocate(&pointer, 32 << 20) != 0 || release(pointer) != 0)
        route_fail("fill", NULL);
}

static void expect(enum bfc_bypass_kind kind, const char *name, int result, uint64_t size) {
    printf("%s %d\n", name, result);
    calls[kind] += result == 0;
    bytes[kind] += result == 0 ? size : 0;
}

// Found without an error: the stand-in may lack a call, natively as well.
#define CALL(kind, name, size, parameters, ...)                                                    \
    do {                                                                                           \
        int(*call) parameters;                                                                     \
        *(void **)&call = dlsym(libcuda, #name);                                                   \
        if (call) {                                                                                \
            fill();                                                                                \
            int result = call(__VA_ARGS__);                                                        \
            expect(kind, #name, result, size);                                                     \
        }                                                                                          \
    } while (0)

struct array {
    size_t width, height;
    int format;
    unsigned channels;
};

struct array3 {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

// As CUmemAllocationProp: pinned memory of the first device.
struct physical {
    int type, handle_types, location_type, location;
    long rest[8];
};

static void allocate_all(void) {
    uint64_t out = 0;
    size_t pitch = 0;
    struct array flat = {64, 32, 0x20 /* float */, 4};
    struct array3 deep = {64, 32, 4, 0x10 /* half */, 1, 0};
    CALL(BFC_BYPASS_ASYNC, cuMemAllocAsync, 1 << 20, (uint64_t *, size_t, void *), &out, 1 << 20,
         NULL);
    CALL(BFC_BYPASS_ASYNC, cuMemAllocAsync_ptsz, 4096, (uint64_t *, size_t, void *), &out, 4096,
         NULL);
    CALL(BFC_BYPASS_MANAGED, cuMemAllocManaged, 8192, (uint64_t *, size_t, unsigned), &out, 8192,
         1);
    CALL(BFC_BYPASS_HOST, cuMemAllocHost_v2, 3000, (uint64_t *, size_t), &out, 3000);
    CALL(BFC_BYPASS_HOST, cuMemHostAlloc, 5000, (uint64_t *, size_t, unsigned), &out, 5000, 0);
    CALL(BFC_BYPASS_ARRAY, cuArrayCreate_v2, 64 * 32 * 16, (uint64_t *, struct array *), &out,
         &flat);
    CALL(BFC_BYPASS_ARRAY, cuArray3DCreate_v2, 64 * 32 * 4 * 2, (uint64_t *, struct array3 *), &out,
         &deep);
    CALL(BFC_BYPASS_PITCH, cuMemAllocPitch_v2, pitch * 10,
         (uint64_t *, size_t *, size_t, size_t, unsigned), &out, &pitch, 100, 10, 4);
    CALL(BFC_BYPASS_V1, cuMemAlloc, 256, (uint64_t *, unsigned), &out, 256);
    CALL(BFC_BYPASS_ASYNC, cuMemAllocAsync, 0, (uint64_t *, size_t, void *), &out, 0, NULL);
    CALL(BFC_BYPASS_ARRAY, cuMipmappedArrayCreate, 64 * 32 * 4 * 2,
         (uint64_t *, struct array3 *, unsigned), &out, &deep, 3);
    struct physical what = {.type = 1, .location_type = 1};
    CALL(BFC_BYPASS_VMM, cuMemCreate, 2 << 20,
         (uint64_t *, size_t, struct physical *, unsigned long long), &out, 2 << 20, &what, 0);
    int (*default_pool)(void **, int);
    void *pool = NULL;
    *(void **)&default_pool = dlsym(libcuda, "cuDeviceGetDefaultMemPool");
    if (default_pool && default_pool(&pool, 0) != 0)
        route_fail("no pool", NULL);
    CALL(BFC_BYPASS_ASYNC, cuMemAllocFromPoolAsync, 2048, (uint64_t *, size_t, void *, void *),
         &out, 2048, pool, NULL);
    CALL(BFC_BYPASS_ASYNC, cuMemAllocFromPoolAsync_ptsz, 1024, (uint64_t *, size_t, void *, void *),
         &out, 1024, pool, NULL);
}

// ---- calls that need memory beside their purpose; not counted ----

static const struct needy {
    const char *symbol;
    int version;
    enum bfc_need need;
} all_calls[] = {
#define BFC_CALL(symbol, version, need) {#symbol, version, BFC_NEED_##need},
#include "interpose/driver/calls.inc"
};

typedef int any_call(long, long, long, long, long, long, long, long, long, long, long);

static void call_full(const char *symbol, const char *way, void *entry) {
    any_call *call;
    *(void **)&call = entry;
    fill();
    printf("%s by %s: %d\n", symbol, way, call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

// What both forms of cuGetProcAddress give for a symbol's name, version and default stream.
static void *ask_resolver(const struct needy *row) {
    int (*first)(const char *, void **, int, unsigned long long);
    int (*second)(const char *, void **, int, unsigned long long, int *);
    char name[64];
    void *a = NULL, *b = NULL;
    *(void **)&first = route_find(libcuda, "cuGetProcAddress");
    *(void **)&second = route_find(libcuda, "cuGetProcAddress_v2");
    snprintf(name, sizeof name, "%s", row->symbol);
    char *twin = strstr(name, "_ptsz");
    if (twin)
        *twin = '\0';
    char *ending = strrchr(name, '_');
    if (ending)
        *ending = '\0';
    unsigned long long flags = twin ? 2 : 0; // a default stream a thread
    if (first(name, &a, row->version, flags) || second(name, &b, row->version, flags, NULL) ||
        a != b)
        route_fail(row->symbol, "cuGetProcAddress");
    return a;
}

// Which hook a program is given does not depend on how it asks; natively the driver may choose.
static void check_hook(const char *symbol, const void *looked_up, const void *resolved) {
    const char *preload = getenv("LD_PRELOAD");
    if (preload && strstr(preload, "bfcpreload") && looked_up != resolved)
        route_fail(symbol, "cuGetProcAddress gave something else than dlsym");
}

static void need_all(void) {
    for (size_t i = 0; is_full && i < sizeof all_calls / sizeof *all_calls; i++) {
        const struct needy *row = &all_calls[i];
        if (!BFC_NEED_RETRIED(row->need))
            continue;
        void *looked_up = route_find(libcuda, row->symbol), *resolved = ask_resolver(row);
        check_hook(row->symbol, looked_up, resolved);
        // The arrays' and other allocations' hooks look at what they are given: see above.
        if (row->need == BFC_NEED_MEMORY)
            continue;
        call_full(row->symbol, "dlsym", looked_up);
        call_full(row->symbol, "cuGetProcAddress", resolved);
    }
}

// An allocating call of a variant that is not hooked: given out as it is, and counted.
static void ask_for_old_variant(void) {
    int (*resolve)(const char *, void **, int, unsigned long long, int *);
    void *entry = NULL;
    *(void **)&resolve = dlsym(libcuda, "cuGetProcAddress_v2");
    if (!resolve)
        return;
    expect(BFC_BYPASS_UNKNOWN_ENTRY, "cuMemAllocHost of 2.0",
           resolve("cuMemAllocHost", &entry, 2000, 0, NULL), 0);
}

static const struct bfc_segment_header *own_segment(void) {
    char path[128], space[64] = "";
    unsigned long number = 0;
    if (readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0)
        sscanf(space, "pid:[%lu]", &number);
    snprintf(path, sizeof path, "/dev/shm" BFC_SEGMENT_NAME_FORMAT, getuid(), number, getpid());
    int file = open(path, O_RDONLY);
    if (file < 0)
        return NULL;
    void *memory = mmap(NULL, BFC_SEGMENT_SIZE, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static int compare(const struct bfc_segment_header *header) {
    int wrong = 0;
    for (int i = 0; i < BFC_BYPASS_KINDS; i++)
        if (header->bypassed_calls[i] != calls[i] || header->bypassed_bytes[i] != bytes[i]) {
            fprintf(stderr, "kind %d: %lu calls, %lu bytes counted; %lu, %lu made\n", i,
                    (unsigned long)header->bypassed_calls[i],
                    (unsigned long)header->bypassed_bytes[i], (unsigned long)calls[i],
                    (unsigned long)bytes[i]);
            wrong = 1;
        }
    return wrong;
}

int main(void) {
    libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!libcuda)
        route_fail("libcuda.so.1", dlerror());
    route_begin(libcuda);
    is_full = dlsym(libcuda, "fullDevice");
    *(void **)&allocate = route_find(libcuda, "cuMemAlloc_v2");
    *(void **)&release = route_find(libcuda, "cuMemFree_v2");
    ask_for_old_variant();
    allocate_all();
    need_all();
    const struct bfc_segment_header *header = own_segment();
    if (header)
        return compare(header);
    const char *preload = getenv("LD_PRELOAD");
    if (preload && strstr(preload, "bfcpreload"))
        route_fail("no segment", NULL);
    return 0;
}

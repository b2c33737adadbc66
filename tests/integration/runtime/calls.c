// When cudaMalloc and cudaFree enter the runtime. A line that begins with "~ " says how often a
// step entered it, which is not the same natively and preloaded; everything else is. usage: calls
// SCENE [LIBRARY [LIBRARY]]     the second is opened at the start
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels_ptx.h"
#include "tests/integration/runtime/entered.h"

static unsigned long entered(void) {
    return cudaEntered("cudaMalloc") + cudaEntered("cudaFree");
}

static void show(const char *what, int code, unsigned long times) {
    printf("%s: %d\n~ %s: %lu\n", what, code, what, times);
    fflush(stdout);
}

#define STEP(what, call)                                                                           \
    do {                                                                                           \
        unsigned long before_ = entered();                                                         \
        int code_ = (int)(call);                                                                   \
        show(what, code_, entered() - before_);                                                    \
    } while (0)

static void *allocate(size_t bytes) {
    void *pointer = NULL;
    if (cudaMalloc(&pointer, bytes) != cudaSuccess)
        abort();
    return pointer;
}

static int pairs(int count) {
    int code = 0;
    void *pointer = NULL;
    for (int i = 0; i < count && code == 0; i++) {
        code = (int)cudaMalloc(&pointer, 1000 + (size_t)i % 7 * 3000);
        code = code ? code : (int)cudaFree(pointer);
    }
    return code;
}

// ---- scenes ----

static void show_reasons(void) {
    void *pointer = NULL, *large = NULL, *managed = NULL;
    STEP("the first", cudaMalloc(&pointer, 1000));
    STEP("a hit", cudaMalloc(&large, 1000));
    STEP("its free", cudaFree(large));
    STEP("100 pairs", pairs(100));
    STEP("a miss", cudaMalloc(&large, 64 << 20));
    STEP("the free of what missed", cudaFree(large));
    STEP("a hit of what missed", cudaMalloc(&large, 64 << 20));
    STEP("nothing", cudaMalloc(&large, 0));
    STEP("no place", cudaMalloc(NULL, 1000));
    STEP("free of nothing", cudaFree(NULL));
    STEP("too much", cudaMalloc(&large, SIZE_MAX / 2));
    printf("last error %d, then %d\n", cudaGetLastError(), cudaGetLastError());
    cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal);
    STEP("free of other memory", cudaFree(managed));
    STEP("free of the stack", cudaFree(&pointer));
    printf("last error %d\n", cudaGetLastError());
    STEP("free inside", cudaFree((char *)pointer + 512));
    printf("last error %d\n", cudaGetLastError());
    STEP("free", cudaFree(pointer));
    STEP("free again", cudaFree(pointer));
    printf("last error kept %d\n", cudaPeekAtLastError());
    STEP("100 pairs with a last error", pairs(100));
    printf("last error %d, then %d\n", cudaGetLastError(), cudaGetLastError());
}

static void show_contexts(void) {
    CUcontext own = NULL, kept = NULL;
    STEP("first of device 0", pairs(1));
    STEP("hits of device 0", pairs(10));
    void *of_0 = allocate(1000);
    printf("set device %d\n", cudaSetDevice(1));
    STEP("first of device 1", pairs(1));
    STEP("hits of device 1", pairs(10));
    STEP("free of device 0's", cudaFree(of_0));
    printf("set device %d\n", cudaSetDevice(0));
    STEP("again of device 0", pairs(1));
    STEP("hits again of device 0", pairs(10));
    printf("no such device %d\n", cudaSetDevice(99));
    STEP("after a device that is none", pairs(1));
    STEP("hits after that", pairs(10));
    printf("last error %d\n", cudaGetLastError());
#if CUDA_VERSION >= 13000
    printf("own context %d\n", cuCtxCreate(&own, NULL, 0, 0));
#else
    printf("own context %d\n", cuCtxCreate(&own, 0, 0));
#endif
    STEP("first of an own context", pairs(1));
    STEP("hits of an own context", pairs(10));
    cuCtxPopCurrent(&kept);
    cuCtxGetCurrent(&kept);
    STEP("back", pairs(1));
    cuCtxSetCurrent(NULL);
    STEP("no context", pairs(1));
    STEP("hits with the runtime's context", pairs(10));
    cuCtxGetCurrent(&own);
    printf("the runtime's context is back: %d\n", own == kept);
    void *of_before = allocate(1000);
    printf("reset %d\n", cudaDeviceReset());
    STEP("free of what is gone", cudaFree(of_before));
    cudaGetLastError();
    STEP("first after the reset", pairs(1));
    STEP("hits after the reset", pairs(10));
}

static void show_captures(void) {
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    void *pointer = NULL;
    STEP("first", pairs(1));
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    void *before = allocate(1000);
    printf("begin %d\n", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    STEP("in a relaxed capture", cudaMalloc(&pointer, 1000));
    STEP("a free in it", cudaFree(before));
    printf("end %d\n", cudaStreamEndCapture(stream, &graph));
    STEP("pairs after it", pairs(10));
    printf("begin %d\n", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    STEP("in a global capture", cudaMalloc(&before, 1000));
    printf("last error %d\n", cudaGetLastError());
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    STEP("pairs after that", pairs(10));
}

static void *run_thread(void *unused) {
    STEP("first of another thread", pairs(1));
    STEP("hits of another thread", pairs(10));
    return unused;
}

static void show_threads(void) {
    pthread_t other;
    STEP("first", pairs(1));
    pthread_create(&other, NULL, run_thread, NULL);
    pthread_join(other, NULL);
    STEP("hits", pairs(10));
}

// An access to no memory: every later call answers with its error, from whichever comes first on.
static void show_fatal(void) {
    CUmodule module;
    CUfunction poke;
    unsigned long long nowhere = 64;
    unsigned one = 1;
    void *arguments[] = {&nowhere, &one};
    STEP("first", pairs(1));
    void *kept = allocate(1000);
    if (cuModuleLoadData(&module, kernels_ptx) != CUDA_SUCCESS ||
        cuModuleGetFunction(&poke, module, "poke") != CUDA_SUCCESS)
        abort();
    printf("launch %d\n", cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    STEP("free", cudaFree(kept));
    printf("last error %d\n", cudaGetLastError());
    STEP("malloc", cudaMalloc(&kept, 1000));
    printf("last error %d\n", cudaGetLastError());
}

static void show_fork(void) {
    STEP("first", pairs(1));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        void *pointer = NULL;
        STEP("in the child", cudaMalloc(&pointer, 1000));
        _exit(0);
    }
    waitpid(child, NULL, 0);
    STEP("in the parent", pairs(10));
}

static void *kept_to_the_end;

static void free_at_exit(void) {
    STEP("at exit", cudaFree(kept_to_the_end));
}

static void show_exit(void) {
    atexit(free_at_exit);
    STEP("first", pairs(1));
    kept_to_the_end = allocate(1000);
    STEP("hits", pairs(10));
}

static int call_found(void *allocator, void *freer) {
    int (*found_malloc)(void **, size_t);
    int (*found_free)(void *);
    void *pointer = NULL;
    *(void **)&found_malloc = allocator;
    *(void **)&found_free = freer;
    int code = found_malloc(&pointer, 1000);
    return code ? code : found_free(pointer);
}

static void show_found(const char *how, void *allocator, void *freer) {
    printf("%s: malloc %s, free %s\n", how,
           allocator == __extension__(void *) cudaMalloc ? "the same" : "another",
           freer == __extension__(void *) cudaFree ? "the same" : "another");
    if (allocator && freer)
        STEP(how, call_found(allocator, freer));
}

// A library that comes and goes: a profiler, another runtime, or another copy of this one.
static void show_guest(const char *path) {
    STEP("first", pairs(1));
    STEP("before", pairs(10));
    void *guest = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    printf("%s\n", guest ? "loaded" : dlerror());
    STEP("with it", pairs(10));
    void (*run)(const char *, int, int);
    *(void **)&run = guest ? dlsym(guest, "plugin_run") : NULL;
    if (run)
        run("plug-in", 10, 1);
    if (guest && dlsym(guest, "cudaMalloc"))
        show_found("found in it", dlsym(guest, "cudaMalloc"), dlsym(guest, "cudaFree"));
    printf("last error here %d\n", cudaPeekAtLastError());
    STEP("still with it", pairs(10));
    if (guest)
        dlclose(guest);
    STEP("a look", pairs(1200));
    STEP("without it", pairs(10));
}

static void *run_many(void *code) {
    *(int *)code = pairs(20000);
    return NULL;
}

// Threads allocate while a library with another runtime comes and goes.
static void show_loads(const char *path) {
    enum { THREADS = 3, LOADS = 200 };
    pthread_t threads[THREADS];
    int codes[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_many, &codes[i]);
    for (int i = 0; i < LOADS; i++) {
        void *guest = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        void (*run)(const char *, int, int);
        *(void **)&run = guest ? dlsym(guest, "plugin_run") : NULL;
        if (i % 50 == 0 && run)
            run("plug-in", 10, 0);
        if (guest)
            dlclose(guest);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        printf("thread: %d\n", codes[i]);
    }
}

static void show_names(void) {
    void *handle = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD), *all = dlopen(NULL, RTLD_NOW);
    STEP("first", pairs(1));
    show_found("handle", dlsym(handle, "cudaMalloc"), dlsym(handle, "cudaFree"));
    show_found("default", dlsym(RTLD_DEFAULT, "cudaMalloc"), dlsym(RTLD_DEFAULT, "cudaFree"));
    show_found("next", dlsym(RTLD_NEXT, "cudaMalloc"), dlsym(RTLD_NEXT, "cudaFree"));
    show_found("process", dlsym(all, "cudaMalloc"), dlsym(all, "cudaFree"));
    const char *version = "libcudart.so.13";
    show_found("handle, version", dlvsym(handle, "cudaMalloc", version),
               dlvsym(handle, "cudaFree", version));
    show_found("default, version", dlvsym(RTLD_DEFAULT, "cudaMalloc", version),
               dlvsym(RTLD_DEFAULT, "cudaFree", version));
    show_found("process, version", dlvsym(all, "cudaMalloc", version),
               dlvsym(all, "cudaFree", version));
    printf("of another version: %s\n",
           dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.12") ? "found" : dlerror());
    printf("of another version in the runtime: %s\n",
           dlvsym(handle, "cudaMalloc", "libcudart.so.12") ? "found" : "not found");
}

int main(int count, char **arguments) {
    const char *scene = count > 1 ? arguments[1] : "pairs";
    static const struct {
        const char *name;
        void (*show)(void);
    } scenes[] = {{"reasons", show_reasons},   {"contexts", show_contexts},
                  {"captures", show_captures}, {"threads", show_threads},
                  {"fatal", show_fatal},       {"fork", show_fork},
                  {"exit", show_exit},         {"names", show_names}};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(scenes[i].name, scene) == 0)
            scenes[i].show();
    if (count > 3 && !dlopen(arguments[3], RTLD_NOW | RTLD_LOCAL))
        puts(dlerror());
    if (strcmp(scene, "guest") == 0)
        show_guest(arguments[2]);
    if (strcmp(scene, "loads") == 0)
        show_loads(arguments[2]);
    if (strcmp(scene, "pairs") == 0) {
        STEP("first", pairs(1));
        STEP("100 pairs", pairs(100));
    }
    fflush(stdout);
    if (getenv("CALLS_REPORT"))
        return system(getenv("CALLS_REPORT"));
    return 0;
}

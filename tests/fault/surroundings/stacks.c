/* Small stacks, and stacks that are not a thread's own. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/fault/surroundings/scene.h"

enum { GUARD = 1 << 16, UNTOUCHED = 0xa5 };

static CUcontext context;
static void (*body)(void);

static void *run_in_context(void *unused) {
    must(cuCtxSetCurrent(context) == CUDA_SUCCESS, "the context");
    body();
    return unused;
}

/* On a stack of `size` bytes, below which a page fault ends the process. */
static void on_stack(size_t size, void (*chosen)(void)) {
    pthread_attr_t attributes;
    pthread_t thread;
    char *memory = mmap(NULL, GUARD + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED && mprotect(memory + GUARD, size, PROT_READ | PROT_WRITE) == 0,
         "a stack");
    memset(memory + GUARD, UNTOUCHED, size);
    body = chosen;
    pthread_attr_init(&attributes);
    must(pthread_attr_setstack(&attributes, memory + GUARD, size) == 0, "pthread_attr_setstack");
    must(pthread_create(&thread, &attributes, run_in_context, NULL) == 0, "a thread");
    pthread_join(thread, NULL);
    size_t left = 0;
    while (memory[GUARD + left] == (char)UNTOUCHED)
        left++;
    fprintf(stderr, "%zu of %zu bytes untouched\n", left, size); /* not compared: for who reads */
    munmap(memory, GUARD + size);
}

static void use_silently(void) {
    CUdeviceptr block;
    if (cuMemAlloc(&block, 5000) != CUDA_SUCCESS || cuMemsetD8(block, 1, 5000) != CUDA_SUCCESS ||
        cuMemFree(block) != CUDA_SUCCESS)
        report("a call failed");
}

static void run_out_silently(void) {
    CUdeviceptr block;
    if (cuMemAlloc(&block, (size_t)1 << 30) != CUDA_ERROR_OUT_OF_MEMORY)
        report("no out of memory");
}

static void begin_with(void (*first)(void)) {
    begin();
    must(cuCtxGetCurrent(&context) == CUDA_SUCCESS, "the context");
    if (first)
        first();
}

/* The least stack that a thread may have. */
static void run_least(void) {
    begin_with(use_silently);
    on_stack((size_t)PTHREAD_STACK_MIN, use_silently);
    on_stack((size_t)PTHREAD_STACK_MIN, run_out_silently);
}

/* The process's first allocation, and its first out of memory, in such a thread. */
static void run_least_first(void) {
    begin_with(NULL);
    on_stack((size_t)PTHREAD_STACK_MIN, use_silently);
}

static void run_least_first_out(void) {
    begin_with(NULL);
    on_stack((size_t)PTHREAD_STACK_MIN, run_out_silently);
}

static void run_least_recorded(void) {
    static char path[4096];
    strcpy(path, getenv("FOLDER"));
    setenv("BFC_RECORD", strcat(path, "/trace"), 1);
    setenv("BFC_ONLY", "*", 1);
    setenv("BFC_NONSENSE", "1", 1);
    run_least_first();
}

static void share(void) {
    CUipcMemHandle handle;
    CUdeviceptr block;
    if (cuMemAlloc(&block, 5000) != CUDA_SUCCESS ||
        cuIpcGetMemHandle(&handle, block) != CUDA_SUCCESS || cuMemFree(block) != CUDA_SUCCESS)
        report("a call failed");
}

static void run_least_shared(void) {
    begin_with(NULL);
    on_stack((size_t)PTHREAD_STACK_MIN, share);
}

/* Beside a process that could give memory back, which is asked and told of. */
static void run_least_beside_another(void) {
    int ready[2], done[2];
    char byte;
    must(pipe(ready) == 0 && pipe(done) == 0, "pipes");
    pid_t child = fork();
    if (child == 0) {
        begin();
        use_memory();
        close(done[1]);
        must(write(ready[1], "r", 1) == 1 && read(done[0], &byte, 1) == 0, "the parent");
        _exit(0);
    }
    must(child > 0 && read(ready[0], &byte, 1) == 1, "a child");
    begin_with(NULL);
    on_stack((size_t)PTHREAD_STACK_MIN, run_out_silently);
    close(done[1]);
}

/* ---- coroutines ---- */

static ucontext_t outer, inner;
static CUdeviceptr block;

static void work_and_yield(void) {
    must(cuMemAlloc(&block, 5000) == CUDA_SUCCESS, "an allocation");
    swapcontext(&inner, &outer);
    must(cuMemFree(block) == CUDA_SUCCESS, "a free");
    run_out();
    swapcontext(&inner, &outer);
    use_memory();
}

static void resume(void) {
    must(cuCtxSetCurrent(context) == CUDA_SUCCESS, "the context");
    swapcontext(&outer, &inner);
}

static void make_coroutine(void) {
    const size_t size = 65536;
    begin_with(NULL);
    getcontext(&inner);
    inner.uc_stack.ss_sp = malloc(size);
    inner.uc_stack.ss_size = size;
    inner.uc_link = &outer;
    makecontext(&inner, work_and_yield, 0);
}

static void run_coroutine(void) {
    make_coroutine();
    for (int i = 0; i < 3; i++)
        resume();
}

/* Begun by one thread, gone on with by others. */
static void run_coroutine_of_threads(void) {
    make_coroutine();
    for (int i = 0; i < 3; i++)
        in_thread(resume);
}

static const struct scene scenes[] = {
    {"least", run_least},
    {"least-first", run_least_first},
    {"least-first-out", run_least_first_out},
    {"least-recorded", run_least_recorded},
    {"least-shared", run_least_shared},
    {"least-beside-another", run_least_beside_another},
    {"coroutine", run_coroutine},
    {"coroutine-of-threads", run_coroutine_of_threads},
};

int main(int argc, char **argv) {
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof *scenes);
}

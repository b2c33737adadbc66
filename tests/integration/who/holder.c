/*
 * Holds device memory that it allocated at known places, and waits for the end of its standard
 * input; a line meanwhile makes it leak more. The scene is its argument.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/integration/who/site.h"

#define MIB ((size_t)1 << 20)

static CUcontext shared;
static CUdeviceptr last; /* that was allocated */

static CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr pointer;
    CUresult result = cuMemAlloc(&pointer, bytes);
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "cuMemAlloc: %d\n", (int)result);
        exit(1);
    }
    last = pointer;
    return pointer;
}

/* ---- places ---- */

void site_large(void);
void site_small(void);
void site_short(void);
void site_burst(void);
void site_leak(void);
void site_deep(int depth);
void site_handler(int number);
void site_coroutine(void);
void site_thread(void);
void site_first_free(CUdeviceptr pointer);
void site_second_free(CUdeviceptr pointer);

SITE void site_large(void) {
    for (int i = 0; i < 4; i++)
        allocate(64 * MIB);
}

SITE void site_small(void) {
    for (int i = 0; i < 1024; i++)
        allocate(MIB / 16);
}

SITE void site_short(void) {
    for (int i = 0; i < 100000; i++)
        cuMemFree(allocate(MIB / 4));
}

/* Of 128 KiB to 4 MiB, 525,760 KiB in all. */
SITE void site_burst(void) {
    for (size_t i = 9; i <= 256; i++)
        allocate(i * 16 * 1024);
}

SITE void site_leak(void) {
    for (int i = 0; i < 16; i++)
        allocate(MIB);
}

SITE void site_deep(int depth) {
    if (depth == 0)
        allocate(32 * MIB);
    else
        site_deep(depth - 1);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

SITE void site_handler(int number) {
    (void)number;
    allocate(32 * MIB);
    __asm__ volatile("" ::: "memory");
}

SITE void site_coroutine(void) {
    allocate(32 * MIB);
    __asm__ volatile("" ::: "memory");
}

SITE void site_thread(void) {
    allocate(32 * MIB);
    __asm__ volatile("" ::: "memory");
}

SITE void site_first_free(CUdeviceptr pointer) {
    cuMemFree(pointer);
    __asm__ volatile("" ::: "memory");
}

SITE void site_second_free(CUdeviceptr pointer) {
    if (cuMemFree(pointer) != CUDA_ERROR_INVALID_VALUE)
        exit(1);
    __asm__ volatile("" ::: "memory");
}

/* ---- scenes ---- */

static void freed_twice(void) {
    CUdeviceptr pointer = allocate(MIB);
    site_first_free(pointer);
    site_second_free(pointer);
}

static void freed_inside(void) {
    site_coroutine();
    site_second_free(last + 4096);
}

/* With its region given back in between. */
static void freed_late(void) {
    size_t (*trim)(size_t);
    CUdeviceptr pointer = allocate(MIB);
    site_first_free(pointer);
    *(void **)&trim = dlsym(RTLD_DEFAULT, "bfc_trim");
    if (!trim || !trim(SIZE_MAX))
        exit(1);
    site_second_free(pointer);
}

static void plain(void) {
    site_large();
    site_small();
    site_short();
}

static void burst(void) {
    site_burst();
}

static void burst_behind_a_loop(void) {
    for (int i = 0; i < 1000000; i++)
        cuMemFree(allocate(4 * MIB));
    for (int i = 0; i < 16; i++)
        allocate(4 * MIB);
}

static void deep(void) {
    site_deep(10000);
}

static void *run_thread(void *unused) {
    (void)unused;
    cuCtxSetCurrent(shared);
    site_thread();
    return NULL;
}

/* One of them with the smallest stack. */
static void threads(void) {
    pthread_t made[8];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)sysconf(_SC_THREAD_STACK_MIN) + 16384);
    for (int i = 0; i < 8; i++)
        pthread_create(&made[i], i ? NULL : &small, run_thread, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(made[i], NULL);
}

/* In a handler, on a stack of its own. */
static void alternate(void) {
    stack_t stack = {.ss_size = 65536, .ss_sp = malloc(65536)};
    struct sigaction action = {.sa_handler = site_handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static ucontext_t outside, inside;

/* On a stack with nothing above it, which is gone when it has run; several times. */
static void coroutine(void) {
    size_t size = 65536;
    for (int i = 0; i < 3; i++) {
        char *space = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(space, size, PROT_READ | PROT_WRITE);
        getcontext(&inside);
        inside.uc_stack.ss_sp = space;
        inside.uc_stack.ss_size = size;
        inside.uc_link = &outside;
        makecontext(&inside, site_coroutine, 0);
        swapcontext(&outside, &inside);
        munmap(space, 2 * size);
    }
}

static void forked(void) {
    site_large();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    site_small();
}

/* A library that allocates, and is gone when it is asked about. */
static void unloaded(void) {
    void *library = dlopen(getenv("PLUGIN"), RTLD_NOW);
    void (*plug)(void);
    *(void **)&plug = library ? dlsym(library, "site_plugin") : NULL;
    if (!plug)
        exit(1);
    plug();
    dlclose(library);
}

/* Code that no table describes: a call of site_coroutine out of bytes. */
static void generated(void) {
#ifdef __x86_64__
    unsigned char code[] = {
        0x48, 0x83, 0xec, 0x18,                      /* sub $24, %rsp */
        0x48, 0xb8, 0,    0,    0,    0, 0, 0, 0, 0, /* movabs $site_coroutine, %rax */
        0xbd, 0xff, 0x00, 0x00, 0x00,                /* mov $255, %ebp */
        0xff, 0xd0,                                  /* call *%rax */
        0x48, 0x83, 0xc4, 0x18, 0xc3,                /* add $24, %rsp; ret */
    };
    void (*site)(void) = site_coroutine, (*run)(void);
    memcpy(code + 6, &site, sizeof site);
    void *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    *(void **)&run = page;
    unsigned long kept;
    __asm__ volatile("mov %%rbp, %0" : "=m"(kept));
    __asm__ volatile(
        "push %%rbp\n sub $136, %%rsp\n call *%0\n add $136, %%rsp\n pop %%rbp" ::"r"(run)
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
          "memory", "cc");
#else
    site_coroutine();
#endif
}

static void ignore(int number) {
    (void)number;
}

/* A signal every 100 microseconds. */
static void signals(void) {
    struct sigaction action = {.sa_handler = ignore};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    plain();
    setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- ends: what runs at one must run whatever becomes of the exit status ---- */

static void at_exit(void) {
    puts("at exit");
}

/* Frees what the scene has not, if it is told to. */
static CUdeviceptr to_free;

static void free_it(void) {
    if (to_free)
        cuMemFree(to_free);
}

static void end(void) {
    puts("ready");
    if (!dlopen(getenv("PLUGIN"), RTLD_NOW)) /* it has a destructor */
        exit(1);
    setenv("AT_END", "destructor", 1);
    atexit(at_exit);
    exit(3);
}

static void ends_leaking(void) {
    site_leak();
    end();
}

static void ends_clean(void) {
    to_free = allocate(MIB);
    atexit(free_it);
    end();
}

static void ends_at_once(void) {
    site_leak();
    _exit(4);
}

static void ends_by_signal(void) {
    site_leak();
    abort();
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
    {"plain", plain},
    {"burst", burst},
    {"burst_behind_a_loop", burst_behind_a_loop},
    {"deep", deep},
    {"threads", threads},
    {"alternate", alternate},
    {"coroutine", coroutine},
    {"forked", forked},
    {"unloaded", unloaded},
    {"generated", generated},
    {"signals", signals},
    {"freed_twice", freed_twice},
    {"freed_inside", freed_inside},
    {"freed_late", freed_late},
    {"ends_leaking", ends_leaking},
    {"ends_clean", ends_clean},
    {"ends_at_once", ends_at_once},
    {"ends_by_signal", ends_by_signal},
};

int main(int count, char **arguments) {
    CUdevice device;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&shared, device) ||
        cuCtxSetCurrent(shared))
        return 1;
    for (size_t i = 0; count > 1 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(scenes[i].name, arguments[1]) == 0)
            scenes[i].run();
    puts("ready");
    fflush(stdout);
    for (char line[64]; fgets(line, sizeof line, stdin);) {
        site_leak();
        puts("leaked");
        fflush(stdout);
    }
    return 0;
}

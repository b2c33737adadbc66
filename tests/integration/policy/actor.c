/*
 * A process of a test: does what its arguments say, one after another, and prints what came of it.
 *
 *   alloc MIB     one block, kept                  free      the block that was allocated last
 *   beside MIB    one block in another thread, which nobody waits for
 *   jump MIB      one block, in another thread; SIGUSR1 leaves the call by siglongjmp
 *   jump_here MIB the same in this thread
 *   try MIB       as alloc, up to ten times until it succeeds: on a busy machine a neighbour may
 *                 answer later than it is waited for
 *   mib N         prints free memory in MiB        sleep MS
 *   loop N        N blocks of 64 KiB, each freed at once
 *   swap MIB      frees the block that was allocated last, of that size, and takes one again, until
 *                 a line comes on standard input
 *   folder PATH   becomes the working folder
 *   device N      goes on on that device
 *   context       goes on in a new context of device 0
 *   reset         ends the primary context of device 0
 *   exec SECONDS  becomes a program that sleeps so long
 *   handler       SIGUSR1 is handled, and restarts no system call
 *   restarter     SIGUSR1 is handled, and restarts system calls
 *   wait          prints "ready" and waits for a line on standard input
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/interpose/program.h"

enum { BLOCKS = 256 };

static CUdeviceptr blocks[BLOCKS];
static int count;

static long long now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static bool allocate(const char *mib) {
    long long began = now_us();
    CUresult result = cuMemAlloc(&blocks[count], (size_t)atol(mib) << 20);
    printf("alloc %s %d %lld\n", mib, (int)result, now_us() - began);
    count += result == CUDA_SUCCESS;
    return result == CUDA_SUCCESS;
}

static void *allocate_there(void *mib) {
    CUdeviceptr block;
    use_primary(0);
    CHECK(cuMemAlloc(&block, (size_t)atol(mib) << 20));
    return NULL;
}

static void allocate_beside(char *mib) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocate_there, mib) == 0 ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_UNKNOWN);
}

static __thread sigjmp_buf before;

static void jump_out(int number) {
    (void)number;
    siglongjmp(before, 1);
}

static void set_jumps(int how) {
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = jump_out}, NULL);
    pthread_sigmask(how, &usr1, NULL);
}

static void jump_here(const char *mib) {
    if (sigsetjmp(before, 1) == 0) {
        set_jumps(SIG_UNBLOCK);
        allocate(mib);
    } else {
        printf("alloc %s -1 0\n", mib);
    }
}

static void *jump_there(void *mib) {
    use_primary(0);
    jump_here(mib);
    return NULL;
}

static void jump(char *mib) {
    pthread_t thread;
    set_jumps(SIG_BLOCK);
    CHECK(pthread_create(&thread, NULL, jump_there, mib) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    pthread_join(thread, NULL);
}

static void try_to_allocate(const char *mib) {
    for (int i = 0; i < 10 && !allocate(mib); i++)
        usleep(20000);
}

static void print_free(void) {
    size_t free_bytes, total;
    CHECK(cuMemGetInfo(&free_bytes, &total));
    printf("free %zu of %zu\n", free_bytes >> 20, total >> 20);
}

static void loop(long rounds) {
    CUdeviceptr block;
    for (long i = 0; i < rounds; i++) {
        CHECK(cuMemAlloc(&block, 65536));
        CHECK(cuMemFree(block));
    }
}

static void wait_for_line(void) {
    char line[16];
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        exit(2);
}

/* It never has nothing for longer than a call takes. */
static void swap(const char *mib) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 0) == 0) {
        CHECK(cuMemFree(blocks[--count]));
        CHECK(cuMemAlloc(&blocks[count++], (size_t)atol(mib) << 20));
    }
    wait_for_line();
}

static void go_on_in_new_context(void) {
    CUcontext context;
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
}

static void ignore(int number) {
    (void)number;
}

int main(int argc, char **argv) {
    use_primary(0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "alloc") == 0 && i + 1 < argc)
            allocate(argv[++i]);
        else if (strcmp(argv[i], "beside") == 0 && i + 1 < argc)
            allocate_beside(argv[++i]);
        else if (strcmp(argv[i], "jump") == 0 && i + 1 < argc)
            jump(argv[++i]);
        else if (strcmp(argv[i], "jump_here") == 0 && i + 1 < argc)
            jump_here(argv[++i]);
        else if (strcmp(argv[i], "try") == 0 && i + 1 < argc)
            try_to_allocate(argv[++i]);
        else if (strcmp(argv[i], "free") == 0)
            CHECK(cuMemFree(blocks[--count]));
        else if (strcmp(argv[i], "mib") == 0)
            print_free();
        else if (strcmp(argv[i], "loop") == 0 && i + 1 < argc)
            loop(atol(argv[++i]));
        else if (strcmp(argv[i], "handler") == 0)
            sigaction(SIGUSR1, &(struct sigaction){.sa_handler = ignore}, NULL);
        else if (strcmp(argv[i], "restarter") == 0)
            sigaction(SIGUSR1, &(struct sigaction){.sa_handler = ignore, .sa_flags = SA_RESTART},
                      NULL);
        else if (strcmp(argv[i], "sleep") == 0 && i + 1 < argc)
            usleep((useconds_t)atol(argv[++i]) * 1000);
        else if (strcmp(argv[i], "device") == 0 && i + 1 < argc)
            use_primary(atoi(argv[++i]));
        else if (strcmp(argv[i], "reset") == 0)
            CHECK(cuDevicePrimaryCtxReset(0));
        else if (strcmp(argv[i], "context") == 0)
            go_on_in_new_context();
        else if (strcmp(argv[i], "exec") == 0 && i + 1 < argc)
            execlp("sleep", "sleep", argv[++i], NULL);
        else if (strcmp(argv[i], "swap") == 0 && i + 1 < argc)
            swap(argv[++i]);
        else if (strcmp(argv[i], "folder") == 0 && i + 1 < argc)
            CHECK(chdir(argv[++i]) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
        else
            wait_for_line();
        fflush(stdout);
    }
    return 0;
}

// Three jobs on one device: two that are idle and have freed all that they had, two fifths of the
// device each, and a third that then wants three fifths. Natively it gets them, unless the idle
// jobs' own pools keep what they freed; preloaded, their pools have to give it back.
//
// CLIENT_POOL=own: the jobs allocate from the driver's pool (cudaMallocAsync), which keeps all. One
// line of JSON, as of the other clients; only the third job's allocations are timed.
// usage: idle_jobs | idle_jobs hold
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOLDERS = 2, BLOCKS = 48, MARK = 4096, SEEN_US = 100000 };

extern char **environ;
static bool own_pool;

static void must(cudaError_t result, const char *what) {
    if (result != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
        exit(1);
    }
}
#define MUST(call) must(call, #call)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// The device's bytes. The driver's pool keeps what is freed from now on.
static size_t begin(void) {
    size_t free_bytes, total;
    MUST(cudaMemGetInfo(&free_bytes, &total));
    if (own_pool) {
        cudaMemPool_t pool;
        uint64_t most = UINT64_MAX;
        MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
        MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most));
    }
    return total;
}

static cudaError_t allocate(void **block, size_t bytes) {
    return own_pool ? cudaMallocAsync(block, bytes, 0) : cudaMalloc(block, bytes);
}

static cudaError_t release(void *block) {
    return own_pool ? cudaFreeAsync(block, 0) : cudaFree(block);
}

// Long enough for who samples the memory in use.
static void stay(void) {
    usleep(SEEN_US);
}

// Blocks of different sizes that are so many bytes together; how many there was room for.
static int fill(void **blocks, size_t bytes) {
    size_t step = bytes / (BLOCKS * (BLOCKS + 1) / 2);
    for (int i = 0; i < BLOCKS; i++) {
        if (allocate(&blocks[i], step * (size_t)(i + 1)) != cudaSuccess) {
            cudaGetLastError();
            return i;
        }
        MUST(cudaMemset(blocks[i], i, MARK));
    }
    return BLOCKS;
}

// Says so by a byte when it is idle, and ends with its standard input.
static int hold(void) {
    void *blocks[BLOCKS];
    char byte = 0;
    if (fill(blocks, begin() / 5 * 2) < BLOCKS) {
        fprintf(stderr, "no room for an idle job\n");
        return 1;
    }
    stay();
    for (int i = 0; i < BLOCKS; i++)
        MUST(release(blocks[i]));
    MUST(cudaDeviceSynchronize());
    return write(STDOUT_FILENO, &byte, 1) != 1 || read(STDIN_FILENO, &byte, 1) != 0;
}

struct holder {
    pid_t pid;
    int to;
};

// One after the other, since both may need most of the device at first. False: it did not come so
// far.
static bool start_holder(struct holder *holder, char *program) {
    char *arguments[] = {program, "hold", NULL}, byte;
    int down[2], up[2];
    posix_spawn_file_actions_t files;
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
        return false;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, down[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, up[1], STDOUT_FILENO);
    int failed = posix_spawn(&holder->pid, "/proc/self/exe", &files, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    close(down[0]);
    close(up[1]);
    holder->to = down[1];
    bool idle = !failed && read(up[0], &byte, 1) == 1;
    close(up[0]);
    return idle;
}

static bool end_holder(const struct holder *holder) {
    int status;
    close(holder->to);
    return waitpid(holder->pid, &status, 0) == holder->pid && status == 0;
}

// FNV-1a of the marks.
static uint64_t digest_of(void **blocks, int count) {
    uint64_t digest = 14695981039346656037u;
    unsigned char seen[MARK];
    for (int i = 0; i < count; i++) {
        MUST(cudaMemcpy(seen, blocks[i], MARK, cudaMemcpyDeviceToHost));
        for (int byte = 0; byte < MARK; byte++)
            digest = (digest ^ seen[byte]) * 1099511628211u;
    }
    return digest;
}

int main(int count, char **arguments) {
    const char *pool = getenv("CLIENT_POOL");
    own_pool = pool && strcmp(pool, "own") == 0;
    if (count == 2 && strcmp(arguments[1], "hold") == 0)
        return hold();
    struct holder holders[HOLDERS];
    void *blocks[BLOCKS];
    for (int i = 0; i < HOLDERS; i++)
        if (!start_holder(&holders[i], arguments[0]))
            return 1;
    size_t wanted = begin() / 5 * 3;
    double from = now();
    int made = fill(blocks, wanted);
    double seconds = now() - from;
    stay();
    printf("{\"client\": \"idle_jobs\", \"digest\": \"%016llx\", \"seconds\": %.4f, ",
           (unsigned long long)digest_of(blocks, made == BLOCKS ? made : 0), seconds);
    printf("\"result\": \"%s\"}\n",
           made == BLOCKS ? "the third job has its memory" : "the third job is out of memory");
    for (int i = 0; i < made; i++)
        MUST(release(blocks[i]));
    bool first_ended = end_holder(&holders[0]), second_ended = end_holder(&holders[1]);
    return !first_ended || !second_ended;
}

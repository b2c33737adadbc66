/* Every limit of the process small, from before the first allocation on. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/surroundings/scene.h"

static struct {
    int resource;
    rlim_t value;
} limit;

/* What the process has mapped already, since a limit of it is on the sum. */
static rlim_t mapped(bool data_alone) {
    unsigned long pages[6] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    must(file && fscanf(file, "%lu %lu %lu %lu %lu %lu", &pages[0], &pages[1], &pages[2], &pages[3],
                        &pages[4], &pages[5]) == 6,
         "statm");
    fclose(file);
    return (data_alone ? pages[5] : pages[0]) * 4096;
}

static void set_limit(void) {
    struct rlimit now;
    must(getrlimit((__rlimit_resource_t)limit.resource, &now) == 0, "getrlimit");
    now.rlim_cur = limit.value;
    if (limit.resource == RLIMIT_AS || limit.resource == RLIMIT_DATA)
        now.rlim_cur += mapped(limit.resource == RLIMIT_DATA);
    must(setrlimit((__rlimit_resource_t)limit.resource, &now) == 0, "setrlimit");
}

/* What the driver maps for its work is the driver's affair. */
static void warm_up(void) {
    CUdeviceptr block;
    must(cuMemAllocAsync(&block, 1 << 20, NULL) == CUDA_SUCCESS &&
             cuMemsetD8(block, 1, 1 << 20) == CUDA_SUCCESS &&
             cuMemFreeAsync(block, NULL) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS,
         "the driver works");
}

/* The driver is there; then the limit, and only then the first allocation. */
static void work_within(void) {
    begin();
    warm_up();
    set_limit();
    use_memory();
    run_out();
    use_memory();
}

static void try_limit(int resource, const char *name, const rlim_t *values, size_t count) {
    char what[64];
    for (size_t i = 0; i < count; i++) {
        limit.resource = resource;
        limit.value = values[i];
        snprintf(what, sizeof what, "%s %llu", name, (unsigned long long)values[i]);
        in_child(what, work_within);
    }
}
#define TRY(resource, ...)                                                                         \
    try_limit(resource, #resource, (const rlim_t[]){__VA_ARGS__},                                  \
              sizeof((const rlim_t[]){__VA_ARGS__}) / sizeof(rlim_t))

static void run_files(void) {
    TRY(RLIMIT_NOFILE, 0, 1, 3, 4, 5, 6);
    TRY(RLIMIT_FSIZE, 0, 1, 4096, 100000, 365631, 365632, 1000000);
}

static void run_files_recorded(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/trace", getenv("FOLDER"));
    setenv("BFC_RECORD", path, 1);
    TRY(RLIMIT_NOFILE, 0, 3, 4);
    TRY(RLIMIT_FSIZE, 0, 1, 100, 1000);
}

static void run_files_at_exit(void) {
    setenv("BFC_SUMMARY", "1", 1);
    TRY(RLIMIT_FSIZE, 0, 100);
}

static void run_memory(void) {
    TRY(RLIMIT_AS, 0, 65536, 300000, 1 << 20, 8 << 20, 64 << 20, 256 << 20);
    TRY(RLIMIT_DATA, 0, 65536, 300000, 1 << 20, 8 << 20, 64 << 20);
    TRY(RLIMIT_STACK, 65536, 262144);
    TRY(RLIMIT_MEMLOCK, 0);
    TRY(RLIMIT_RSS, 0);
}

static void run_others(void) {
    TRY(RLIMIT_NPROC, 0, 1);
    TRY(RLIMIT_CORE, 0);
    TRY(RLIMIT_SIGPENDING, 0);
    TRY(RLIMIT_MSGQUEUE, 0);
    TRY(RLIMIT_NICE, 0);
    TRY(RLIMIT_RTPRIO, 0);
    TRY(RLIMIT_LOCKS, 0);
}

/* A user that may have no more threads; root may always. */
static void run_no_thread(void) {
    if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        skip("no other user here");
    TRY(RLIMIT_NPROC, 0, 1);
}

/* The time runs out while it works: it ends as natively. */
static void run_out_of_time(void) {
    limit.resource = RLIMIT_CPU;
    limit.value = 1;
    begin();
    set_limit();
    for (;;)
        use_memory();
}

static void run_processor(void) {
    in_child("RLIMIT_CPU", run_out_of_time);
}

/* Standard error is a file at its limit: what we say does not fit. */
static void run_standard_error(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/said", getenv("FOLDER"));
    if (!getenv("FULL")) {
        setenv("FULL", "1", 1);
        must(freopen(path, "w", stderr) != NULL, "freopen");
        execl("/proc/self/exe", "scene", "standard-error", (char *)NULL);
        skip("no exec here");
    }
    limit.resource = RLIMIT_FSIZE;
    work_within();
}

/* The program's own SIGXFSZ, held back, stays; ours does not show. */
static void run_pending(void) {
    sigset_t one, pending;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &one, NULL);
    limit.resource = RLIMIT_FSIZE;
    work_within();
    sigpending(&pending);
    report("pending after ours: %d", sigismember(&pending, SIGXFSZ));
    raise(SIGXFSZ);
    use_memory();
    report("taken: %d", sigtimedwait(&one, NULL, &(struct timespec){0}));
}

/* Other processes are given pooled memory by a table of files: no room for it is an error. */
static void export_within(void) {
    CUipcMemHandle handle;
    CUdeviceptr block;
    begin();
    must(cuMemAlloc(&block, 4096) == CUDA_SUCCESS, "a block");
    set_limit();
    CUresult code = cuIpcGetMemHandle(&handle, block);
    must(code == CUDA_SUCCESS || code == CUDA_ERROR_OUT_OF_MEMORY, "an answer of the driver's");
    must(cuMemFree(block) == CUDA_SUCCESS, "a free");
    use_memory();
}

static void run_exports(void) {
    limit.resource = RLIMIT_FSIZE;
    limit.value = 0;
    in_child("export", export_within);
    limit.resource = RLIMIT_NOFILE;
    in_child("export", export_within);
}

static const struct scene scenes[] = {
    {"files", run_files},
    {"files-recorded", run_files_recorded},
    {"files-at-exit", run_files_at_exit},
    {"memory", run_memory},
    {"others", run_others},
    {"no-thread", run_no_thread},
    {"processor", run_processor},
    {"standard-error", run_standard_error},
    {"pending", run_pending},
    {"exports", run_exports},
};

int main(int argc, char **argv) {
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof *scenes);
}

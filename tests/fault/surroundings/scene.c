/* The report, and the work that every scene does. */
#include "tests/fault/surroundings/scene.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPORT_SIZE = 1 << 16, BLOCKS = 64 };
#define LARGE ((size_t)32 << 20)

static struct {
    unsigned used; /* atomic */
    char text[];
} * reported;

static void map_report(void) {
    const char *path = getenv("REPORT");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        abort();
    reported = mmap(NULL, REPORT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (reported == MAP_FAILED)
        abort();
}

void report(const char *format, ...) {
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    length = length < (int)sizeof line - 1 ? length : (int)sizeof line - 2;
    line[length++] = '\n';
    unsigned at = __atomic_fetch_add(&reported->used, (unsigned)length, __ATOMIC_RELAXED);
    if (at + (unsigned)length + sizeof *reported <= REPORT_SIZE)
        memcpy(reported->text + at, line, (size_t)length);
}

void skip(const char *why) {
    report("skipped: %s", why);
    _exit(77);
}

void must(bool fine, const char *what) {
    if (fine)
        return;
    report("not so: %s", what);
    _exit(1);
}

int run_scene(int argc, char **argv, const struct scene *scenes, size_t count) {
    bool list = argc > 1 && strcmp(argv[1], "list") == 0;
    for (size_t i = 0; i < count; i++)
        if (list) {
            puts(scenes[i].name);
        } else if (argc > 1 && strcmp(argv[1], scenes[i].name) == 0) {
            map_report();
            scenes[i].run();
            return 0;
        }
    return list ? 0 : 2;
}

/* ---- device memory ---- */

void begin(void) {
    CUcontext context;
    must(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
             cuCtxSetCurrent(context) == CUDA_SUCCESS,
         "a context");
}

static void expect(CUresult code, const char *call) {
    if (code != CUDA_SUCCESS)
        report("%s: %d", call, (int)code);
}

void use_memory(void) {
    CUdeviceptr blocks[8] = {0};
    unsigned char byte = 0;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 8; i++)
            expect(cuMemAlloc(&blocks[i], 1000u << i), "cuMemAlloc");
        for (size_t i = 0; i < 8; i++)
            expect(cuMemsetD8(blocks[i], (unsigned char)i, 1000u << i), "cuMemsetD8");
        for (size_t i = 0; i < 8; i++) {
            expect(cuMemcpyDtoH(&byte, blocks[i] + 999, 1), "cuMemcpyDtoH");
            if (byte != i)
                report("block %zu holds %d", i, byte);
        }
        for (size_t i = 0; i < 8; i++)
            expect(cuMemFree(blocks[i]), "cuMemFree");
    }
}

void run_out(void) {
    CUdeviceptr blocks[BLOCKS];
    int count = 0;
    CUresult code = CUDA_SUCCESS;
    while (count < BLOCKS && (code = cuMemAlloc(&blocks[count], LARGE)) == CUDA_SUCCESS)
        count++;
    report("out of memory: %d", (int)code);
    while (count > 0)
        expect(cuMemFree(blocks[--count]), "cuMemFree");
}

void work(void) {
    begin();
    use_memory();
    run_out();
    use_memory();
}

/* ---- children and threads ---- */

void report_end(const char *what, int status) {
    if (WIFEXITED(status))
        report("%s: exit %d", what, WEXITSTATUS(status));
    else
        report("%s: signal %d", what, WTERMSIG(status));
}

void in_child(const char *what, void (*scene)(void)) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        scene();
        exit(0);
    }
    must(child > 0 && waitpid(child, &status, 0) == child, "a child");
    report_end(what, status);
}

static void *run_body(void *argument) {
    void (*body)(void);
    memcpy(&body, argument, sizeof body);
    body();
    return NULL;
}

void in_thread(void (*body)(void)) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, run_body, &body) == 0, "a thread");
    pthread_join(thread, NULL);
}

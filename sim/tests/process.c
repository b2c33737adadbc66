// What a forked child and a process at its end get: errors, and no hang.
#include "sim/tests/check.h"

#include <cuda.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static CUdeviceptr memory;

__attribute__((destructor)) static void last_call(void) {
    if (cuMemFree(memory) != CUDA_ERROR_DEINITIALIZED) {
        fputs("a call after the end was not answered with CUDA_ERROR_DEINITIALIZED\n", stderr);
        _exit(1);
    }
}

static void calls_in_child(void) {
    CUdeviceptr unused = 0;
    alarm(20);
    ANSWERS(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
    ANSWERS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&unused, 1));
    ANSWERS(CUDA_ERROR_NOT_INITIALIZED, cuMemFree(memory));
    ANSWERS(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
    _exit(0);
}

static void succeeds(pid_t child) {
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    DO(cuMemAlloc(&memory, 1 << 20));
    DO(cuMemsetD8Async(memory, 1, 1 << 20, NULL));
    pid_t child = fork();
    if (child == 0) {
        calls_in_child();
    }
    succeeds(child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        calls_in_child();
    }
    succeeds(child);
    DO(cuCtxSynchronize());
    return 0;
}

/*
 * What the cases about sharing between processes share: a child that is forked before CUDA is
 * used, or is a program of its own, and two pipes.
 */
#ifndef BFC_TESTS_CONFORMANCE_PROCESSES_H
#define BFC_TESTS_CONFORMANCE_PROCESSES_H

#include <sys/wait.h>

#include "tests/conformance/gpu.h"

struct other {
    pid_t pid; /* of the child, in the parent */
    int from, to;
};

static UNUSED void must_move(ssize_t moved, size_t bytes) {
    if (moved == (ssize_t)bytes)
        return;
    printf("the other process has ended\n");
    fflush(stdout);
    _exit(1);
}

static UNUSED void give(const struct other *other, const void *data, size_t bytes) {
    must_move(write(other->to, data, bytes), bytes);
}

static UNUSED void take(const struct other *other, void *data, size_t bytes) {
    must_move(read(other->from, data, bytes), bytes);
}

/* Lets the other go on, or waits until it lets us. */
static UNUSED void pass(const struct other *other) {
    give(other, "", 1);
}

static UNUSED void await(const struct other *other) {
    char byte;
    take(other, &byte, 1);
}

/* True in the child. Output is the parent's alone up to there. */
static UNUSED bool fork_other(struct other *other) {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0)
        exit(2);
    fflush(stdout);
    other->pid = fork();
    other->from = other->pid == 0 ? down[0] : up[0];
    other->to = other->pid == 0 ? up[1] : down[1];
    close(other->pid == 0 ? down[1] : up[1]);
    close(other->pid == 0 ? up[0] : down[0]);
    return other->pid == 0;
}

/* Its exit status, or 1000. */
static UNUSED int end_of(const struct other *other) {
    int status = 0;
    if (waitpid(other->pid, &status, 0) != other->pid || !WIFEXITED(status))
        return 1000;
    return WEXITSTATUS(status);
}

/* ---- one spelling on the three routes ---- */

#ifdef ROUTE_DRIVER
typedef CUipcMemHandle share_handle;
static UNUSED int share(share_handle *handle, void *pointer) {
    return (int)cuIpcGetMemHandle(handle, address(pointer));
}
static UNUSED int open_shared(void **pointer, share_handle handle) {
    CUdeviceptr at = 0;
    int code = (int)cuIpcOpenMemHandle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    *pointer = pointer_to(at);
    return code;
}
static UNUSED int close_shared(void *pointer) {
    return (int)cuIpcCloseMemHandle(address(pointer));
}
#else
typedef cudaIpcMemHandle_t share_handle;
static UNUSED int share(share_handle *handle, void *pointer) {
    return (int)cudaIpcGetMemHandle(handle, pointer);
}
static UNUSED int open_shared(void **pointer, share_handle handle) {
    return (int)cudaIpcOpenMemHandle(pointer, handle, cudaIpcMemLazyEnablePeerAccess);
}
static UNUSED int close_shared(void *pointer) {
    return (int)cudaIpcCloseMemHandle(pointer);
}
#endif

#endif

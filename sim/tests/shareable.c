// Memory that processes share by descriptors: the same bytes, and used until the last one is done.
#include "sim/tests/check.h"

#include <cuda.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)2 << 20)
#define BY_DESCRIPTOR CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static void begin(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
}

static size_t free_bytes(void) {
    size_t now = 0, total = 0;
    DO(cuMemGetInfo(&now, &total));
    return now;
}

static CUmemGenericAllocationHandle created(size_t size, CUmemAllocationHandleType types) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .requestedHandleTypes = types,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                  .allocFlags = {.gpuDirectRDMACapable = 1}};
    CUmemGenericAllocationHandle handle = 0;
    DO(cuMemCreate(&handle, size, &wanted, 0));
    return handle;
}

static CUdeviceptr mapped(CUmemGenericAllocationHandle handle, size_t size) {
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr start = 0;
    DO(cuMemAddressReserve(&start, size, 0, 0, 0));
    DO(cuMemMap(start, size, 0, handle, 0));
    DO(cuMemSetAccess(start, size, &access, 1));
    return start;
}

static void drop(CUdeviceptr start, size_t size) {
    DO(cuMemUnmap(start, size));
    DO(cuMemAddressFree(start, size));
}

static int exported(CUmemGenericAllocationHandle handle) {
    int file = -1;
    DO(cuMemExportToShareableHandle(&file, handle, BY_DESCRIPTOR, 0));
    return file;
}

static CUresult import(CUmemGenericAllocationHandle *handle, int file) {
    return cuMemImportFromShareableHandle(handle, (void *)(intptr_t)file, BY_DESCRIPTOR);
}

static int byte_at(CUdeviceptr address) {
    unsigned char byte = 0;
    DO(cuMemcpyDtoH(&byte, address, 1));
    return byte;
}

static void set(CUdeviceptr start, unsigned char value, size_t size) {
    DO(cuMemsetD8(start, value, size));
    DO(cuCtxSynchronize());
}

// ---- a descriptor goes through a socket ----

union rights {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
};

static void give(int socket, int file) {
    union rights rights = {.head = {.cmsg_len = CMSG_LEN(sizeof file),
                                    .cmsg_level = SOL_SOCKET,
                                    .cmsg_type = SCM_RIGHTS}};
    struct iovec byte = {.iov_base = (char[1]){0}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = &rights,
                             .msg_controllen = sizeof rights.room};
    memcpy(CMSG_DATA(&rights.head), &file, sizeof file);
    CHECK(sendmsg(socket, &message, 0) == 1);
    close(file);
}

static int take(int socket) {
    union rights rights = {0};
    struct iovec byte = {.iov_base = (char[1]){0}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = &rights,
                             .msg_controllen = sizeof rights.room};
    int file = -1;
    CHECK(recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message) != NULL);
    memcpy(&file, CMSG_DATA(&rights.head), sizeof file);
    return file;
}

static void tell(int socket) {
    CHECK(write(socket, "", 1) == 1);
}

static void await(int socket) {
    char byte = 0;
    CHECK(read(socket, &byte, 1) == 1);
}

// ---- what the other process does ----

static void importer(int socket) {
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUmemAllocationProp properties;
    begin();
    int file = take(socket);
    DO(import(&handle, file));
    DO(import(&again, file));
    close(file);
    DO(cuMemGetAllocationPropertiesFromHandle(&properties, handle));
    CHECK(properties.location.id == 0 && properties.requestedHandleTypes == BY_DESCRIPTOR &&
          properties.allocFlags.gpuDirectRDMACapable == 1);
    CUdeviceptr start = mapped(handle, 3 * PAGE);
    CHECK(byte_at(start) == 'e' && byte_at(start + 3 * PAGE - 1) == 'e');
    set(start + PAGE, 'i', PAGE);
    tell(socket);
    await(socket); // until the exporter has let go of it
    CHECK(byte_at(start) == 'E' && byte_at(start + PAGE) == 'i');
    DO(cuMemRelease(handle));
    DO(cuMemRelease(again));
    CHECK(byte_at(start) == 'E');
    tell(socket);
    await(socket);
    drop(start, 3 * PAGE);
    tell(socket);

    DO(import(&handle, take(socket)));
    start = mapped(handle, PAGE);
    tell(socket);
    pause(); // until it is killed
}

static void exporter(int socket, pid_t child) {
    size_t before = free_bytes();
    CUmemGenericAllocationHandle handle = created(3 * PAGE, BY_DESCRIPTOR);
    CUdeviceptr start = mapped(handle, 3 * PAGE);
    set(start, 'e', 3 * PAGE);
    give(socket, exported(handle));
    await(socket);
    CHECK(byte_at(start + PAGE) == 'i' && byte_at(start + 2 * PAGE) == 'e');
    set(start, 'E', 1);
    DO(cuMemRelease(handle));
    drop(start, 3 * PAGE);
    CHECK(before - free_bytes() == 3 * PAGE);
    tell(socket);
    await(socket);
    CHECK(before - free_bytes() == 3 * PAGE); // a mapping there
    tell(socket);
    await(socket);
    CHECK(free_bytes() == before);

    handle = created(PAGE, BY_DESCRIPTOR);
    give(socket, exported(handle));
    DO(cuMemRelease(handle));
    await(socket);
    CHECK(before - free_bytes() == PAGE);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(free_bytes() == before);
}

// ---- within one process ----

static void descriptors(void) {
    size_t before = free_bytes();
    int file = -1;
    CUipcMemHandle legacy;
    CUmemGenericAllocationHandle plain = created(PAGE, CU_MEM_HANDLE_TYPE_NONE), more = 0;
    CUmemGenericAllocationHandle handle = created(PAGE, BY_DESCRIPTOR);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&file, plain, BY_DESCRIPTOR, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_WIN32, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemExportToShareableHandle(&file, handle, BY_DESCRIPTOR, 1));
    file = open("/dev/zero", O_RDWR | O_CLOEXEC);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, import(&more, file));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, import(&more, -1));
    close(file);
    DO(cuMemRelease(plain));

    CUdeviceptr start = mapped(handle, PAGE);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&legacy, start));
    set(start, 'o', PAGE);
    file = exported(handle);
    DO(cuMemRelease(handle));
    drop(start, PAGE);
    CHECK(before - free_bytes() == PAGE); // the descriptor keeps it
    DO(import(&more, file));              // and brings it back
    close(file);
    start = mapped(more, PAGE);
    CHECK(byte_at(start + PAGE - 1) == 'o');
    DO(cuMemRelease(more));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(more));
    drop(start, PAGE);
    CHECK(free_bytes() == before);
    file = exported(handle = created(PAGE, BY_DESCRIPTOR));
    DO(cuMemRelease(handle));
    close(file);
    CHECK(free_bytes() == before);
}

// A dma-buf of a range: one handle's, several handles', with a hole, of handles that differ.
static void ranges(void) {
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle alike[] = {created(PAGE, 0), created(2 * PAGE, 0)};
    CUmemGenericAllocationHandle other = created(PAGE, BY_DESCRIPTOR);
    CUdeviceptr start = 0;
    size_t before = free_bytes();
    unsigned char byte = 0;
    int one = -1, many = -1, none = -1;
    const CUmemRangeHandleType kind = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    DO(cuMemAddressReserve(&start, 5 * PAGE, 0, 0, 0));
    DO(cuMemMap(start, PAGE, 0, alike[0], 0));
    DO(cuMemMap(start + PAGE, 2 * PAGE, 0, alike[1], 0));
    DO(cuMemMap(start + 3 * PAGE, PAGE, 0, other, 0));
    DO(cuMemSetAccess(start, 4 * PAGE, &access, 1));
    set(start + PAGE, 'd', 2 * PAGE);
    DO(cuMemGetHandleForAddressRange(&one, start + PAGE + 4096, PAGE, kind, 0));
    CHECK(read(one, &byte, 1) == 1 && byte == 'd');
    DO(cuMemGetHandleForAddressRange(&many, start + 4096, 3 * PAGE - 4096, kind, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemGetHandleForAddressRange(&none, start, 4 * PAGE, kind, 0)); // not alike
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemGetHandleForAddressRange(&none, start + 3 * PAGE, 2 * PAGE, kind, 0)); // bare
    DO(cuMemUnmap(start, 4 * PAGE));
    DO(cuMemRelease(alike[0]));
    DO(cuMemRelease(alike[1]));
    DO(cuMemRelease(other));
    CHECK(free_bytes() == before + PAGE);
    close(one);
    CHECK(free_bytes() == before + PAGE);
    close(many);
    CHECK(free_bytes() == before + 4 * PAGE);
    DO(cuMemAddressFree(start, 5 * PAGE));
}

int main(void) {
    int sockets[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    pid_t child = fork(); // before anyone called CUDA
    CHECK(child >= 0);
    if (child == 0) {
        importer(sockets[1]);
        return 0;
    }
    begin();
    descriptors();
    ranges();
    exporter(sockets[0], child);
    return 0;
}

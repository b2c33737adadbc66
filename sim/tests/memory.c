// Device memory: alignment, errors, what is charged, what a large device costs, what pointers tell.
#include "sim/tests/check.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static size_t free_bytes(void) {
    size_t now = 0, total = 0;
    DO(cuMemGetInfo(&now, &total));
    CHECK(now <= total);
    return now;
}

static CUdeviceptr take(size_t size) {
    CUdeviceptr memory = 0;
    DO(cuMemAlloc(&memory, size));
    CHECK(memory % 512 == 0);
    return memory;
}

static void sizes_and_alignment(void) {
    size_t before = free_bytes();
    CUdeviceptr one = take(1), two = take(1000), large = take((3 << 20) + 1);
    CHECK(two - one == 512); // cut from one page
    CHECK(large % (2 << 20) == 0);
    CHECK(before - free_bytes() == 3 * (2 << 20));
    DO(cuMemFree(one));
    DO(cuMemFree(two));
    DO(cuMemFree(large));
    CHECK(free_bytes() == before);
}

static void errors(void) {
    CUdeviceptr memory = take(5 << 20), huge = 0;
    int on_stack = 0;
    size_t all = free_bytes();
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&huge, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 1));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&huge, SIZE_MAX));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&huge, all + 1));
    DO(cuMemAlloc(&huge, all));
    DO(cuMemFree(huge));
    DO(cuMemFree(0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory + 512));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)&on_stack));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(memory, 0, (5 << 20) + 1));
    DO(cuMemFree(memory));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(memory, 0, 1));
}

static size_t resident_bytes(void) {
    size_t pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    CHECK(file != NULL && fscanf(file, "%zu %zu", &pages, &resident) == 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void only_touched_memory_costs(void) {
    size_t total = 0, room = (size_t)64 << 20;
    DO(cuDeviceTotalMem(&total, 0));
    size_t before = resident_bytes();
    CUdeviceptr all = take(total - total / 8);
    DO(cuMemsetD8(all + (total / 2), 9, 8 << 20));
    DO(cuCtxSynchronize());
    CHECK(resident_bytes() - before < room);
    DO(cuMemFree(all));
}

static void contents(void) {
    char host[3000], back[3000];
    CUdeviceptr memory = take(sizeof host);
    memset(host, 'a', sizeof host);
    DO(cuMemcpyHtoD(memory, host, sizeof host));
    DO(cuMemsetD8(memory + 1000, 'b', 1000));
    DO(cuMemsetD32(memory + 2000, 0x64636261, 250));
    DO(cuMemcpyDtoH(back, memory, sizeof back));
    CHECK(memcmp(back, host, 1000) == 0);
    CHECK(back[1000] == 'b' && back[1999] == 'b');
    CHECK(memcmp(back + 2996, "abcd", 4) == 0);
    DO(cuMemFree(memory));
}

static void pageable_bytes_are_read_at_the_call(void) {
    char bytes[64] = "before", back[64] = "";
    CUstream stream = NULL;
    CUdeviceptr memory = take(sizeof bytes);
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuMemcpyHtoDAsync(memory, bytes, sizeof bytes, stream));
    strcpy(bytes, "after");
    DO(cuMemcpyDtoHAsync(back, memory, sizeof back, stream)); // pageable: done when it returns
    CHECK(strcmp(back, "before") == 0);
    DO(cuStreamDestroy(stream));
    DO(cuMemFree(memory));
}

static void pointers_tell(CUcontext context) {
    CUdeviceptr memory = take(1234), start = 0;
    size_t size = 0;
    unsigned type = 0;
    unsigned long long first = 0, second = 0;
    CUcontext owner = NULL;
    DO(cuMemGetAddressRange(&start, &size, memory + 1233));
    CHECK(start == memory && size == 1234);
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&start, &size, memory + 1234));
    DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 5));
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    DO(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
    CHECK(owner == context);
    DO(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
    DO(cuMemFree(memory));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void *into[] = {&owner, &type};
    DO(cuPointerGetAttributes(2, which, into, memory));
    CHECK(owner == NULL && type == 0);
    CHECK(take(1234) == memory);
    DO(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
    CHECK(first != second);
    DO(cuMemFree(memory));
}

static void pinned_memory(void) {
    void *memory = NULL;
    unsigned type = 0;
    DO(cuMemAllocHost(&memory, 5000));
    DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                             (CUdeviceptr)(uintptr_t)memory + 4999));
    CHECK(type == CU_MEMORYTYPE_HOST);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)memory));
    DO(cuMemFreeHost(memory));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(memory));
}

int main(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    sizes_and_alignment();
    errors();
    only_touched_memory_costs();
    contents();
    pageable_bytes_are_read_at_the_call();
    pointers_tell(context);
    pinned_memory();
    return 0;
}

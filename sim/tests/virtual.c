// Addresses apart from memory: reserved, mapped, seen at several addresses, unmapped under work.
#include "sim/tests/check.h"

#include "kernels_ptx.h"
#include "sim/kernel.h"
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define PAGE (2 * MIB)

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static size_t free_bytes(void) {
    size_t now = 0, total = 0;
    DO(cuMemGetInfo(&now, &total));
    return now;
}

static CUdeviceptr reserved(size_t size) {
    CUdeviceptr start = 0;
    DO(cuMemAddressReserve(&start, size, 0, 0, 0));
    return start;
}

static CUmemGenericAllocationHandle created(size_t size) {
    CUmemGenericAllocationHandle handle = 0;
    DO(cuMemCreate(&handle, size, &on_device, 0));
    return handle;
}

static CUresult let(int device, CUmemAccess_flags flags, CUdeviceptr start, size_t size) {
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                              .flags = flags};
    return cuMemSetAccess(start, size, &access, 1);
}

static void open_to_all(CUdeviceptr start, size_t size) {
    DO(let(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, start, size));
}

static CUdeviceptr mapped(size_t size) {
    CUdeviceptr start = reserved(size);
    CUmemGenericAllocationHandle handle = created(size);
    DO(cuMemMap(start, size, 0, handle, 0));
    DO(cuMemRelease(handle));
    open_to_all(start, size);
    return start;
}

static void drop(CUdeviceptr start, size_t size) {
    DO(cuMemUnmap(start, size));
    DO(cuMemAddressFree(start, size));
}

static int byte_at(CUdeviceptr address) {
    unsigned char byte = 0;
    DO(cuMemcpyDtoH(&byte, address, 1));
    return byte;
}

static void two_in_one_range(void) {
    CUdeviceptr start = reserved(8 * PAGE);
    size_t grain = 0, before = free_bytes();
    DO(cuMemGetAllocationGranularity(&grain, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(grain == PAGE);
    CUmemGenericAllocationHandle one = created(PAGE), two = created(PAGE);
    CHECK(before - free_bytes() == 2 * PAGE);
    DO(cuMemMap(start, PAGE, 0, one, 0));
    DO(cuMemMap(start + PAGE, PAGE, 0, two, 0));
    open_to_all(start, 2 * PAGE);
    DO(cuMemsetD8(start, 7, 2 * PAGE)); // over both
    CHECK(byte_at(start) == 7 && byte_at(start + 2 * PAGE - 1) == 7);
    DO(cuMemRelease(one)); // the mapping keeps it
    CHECK(before - free_bytes() == 2 * PAGE);
    DO(cuMemUnmap(start, 2 * PAGE));
    CHECK(before - free_bytes() == PAGE);
    DO(cuMemRelease(two));
    CHECK(free_bytes() == before);
    DO(cuMemAddressFree(start, 8 * PAGE));
}

static void alignments(void) {
    CUdeviceptr start = 0;
    for (size_t alignment = 4096; alignment <= 1024 * MIB; alignment *= 2) {
        DO(cuMemAddressReserve(&start, 2 * PAGE, alignment, 0, 0));
        CHECK(start % alignment == 0 && start % PAGE == 0);
        DO(cuMemAddressFree(start, 2 * PAGE));
    }
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&start, PAGE, 3 * PAGE, 0, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&start, PAGE, 0, 0, 1));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY,
            cuMemAddressReserve(&start, ~(size_t)0 - PAGE + 1, 1024 * MIB, 0, 0));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAddressReserve(&start, (size_t)1 << 60, 0, 0, 0));
}

// A range that is mapped, opened or unmapped must be one of whole mappings.
static void refusals(void) {
    CUdeviceptr start = reserved(8 * PAGE);
    CUmemGenericAllocationHandle large = created(2 * PAGE), small = created(PAGE), none = 0;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, 1, &on_device, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, PAGE, PAGE, large, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, PAGE, 0, large, 0)); // a part of it
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 1, PAGE, 0, small, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 7 * PAGE, 2 * PAGE, 0, large, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 8 * PAGE, PAGE, 0, small, 0));
    DO(cuMemMap(start + PAGE, 2 * PAGE, 0, large, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + PAGE, PAGE, 0, small, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, 2 * PAGE, 0, large, 0)); // over its first
    DO(cuMemMap(start, PAGE, 0, small, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start, 2 * PAGE));        // one and a half
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start + PAGE, PAGE));     // a half
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start + 2 * PAGE, PAGE)); // the other half
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start, 4 * PAGE));        // and a bare page
    ANSWERS(CUDA_ERROR_INVALID_VALUE, let(0, CU_MEM_ACCESS_FLAGS_PROT_READ, start, 4 * PAGE));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, let(0, (CUmemAccess_flags)4, start, PAGE));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, let(7, CU_MEM_ACCESS_FLAGS_PROT_READ, start, PAGE));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(start, 8 * PAGE));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(start));
    DO(cuMemUnmap(start, 3 * PAGE));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start, 3 * PAGE));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(start, 4 * PAGE));
    DO(cuMemAddressFree(start, 8 * PAGE));
    DO(cuMemRelease(small));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(small));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, PAGE, 0, small, 0));
    DO(cuMemRelease(large));
}

// One handle at three addresses: the same bytes, each address with its own access.
static void aliases(void) {
    CUdeviceptr start = reserved(8 * PAGE), other = reserved(2 * PAGE);
    size_t before = free_bytes();
    CUmemGenericAllocationHandle handle = created(2 * PAGE), same = 0;
    DO(cuMemMap(start, 2 * PAGE, 0, handle, 0));
    DO(cuMemMap(start + 4 * PAGE, 2 * PAGE, 0, handle, 0));
    DO(cuMemMap(other, 2 * PAGE, 0, handle, 0));
    open_to_all(start, 2 * PAGE);
    open_to_all(other, 2 * PAGE);
    DO(cuMemsetD8(other, 'a', 2 * PAGE));
    CHECK(byte_at(start) == 'a' && byte_at(start + 2 * PAGE - 1) == 'a');
    DO(cuMemsetD8(start + PAGE, 'b', 1));
    CHECK(byte_at(other + PAGE) == 'b');
    CHECK(before - free_bytes() == 2 * PAGE);
    DO(cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(other + 5)));
    CHECK(same == handle);
    DO(cuMemRelease(same));
    DO(cuMemRelease(handle));
    drop(other, 2 * PAGE);
    CHECK(byte_at(start + PAGE) == 'b');
    DO(cuMemUnmap(start, 2 * PAGE));
    CHECK(before - free_bytes() == 2 * PAGE); // the one without access
    DO(cuMemUnmap(start + 4 * PAGE, 2 * PAGE));
    CHECK(free_bytes() == before);
    DO(cuMemAddressFree(start, 8 * PAGE));
}

static void new_context(void) {
    CUcontext context = NULL;
    DO(cuDevicePrimaryCtxReset(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
}

// ---- bare addresses, and memory that goes from under work ----

static CUresult launched(const char *name, CUdeviceptr address, uint64_t count) {
    CUmodule module = NULL;
    CUfunction function = NULL;
    unsigned value = 'k';
    DO(cuModuleLoadData(&module, kernels_ptx));
    DO(cuModuleGetFunction(&function, module, name));
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&address, &count, &value},
                          NULL);
}

static void faults(void) {
    CUdeviceptr memory = 0;
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&memory, 1)); // for good
    new_context();
}

static void bare_addresses(void) {
    CUdeviceptr start = reserved(4 * PAGE), plain = 0;
    CUmemGenericAllocationHandle handle = created(PAGE);
    char byte = 0;
    DO(launched("fill", start, 1));
    faults();
    DO(cuMemsetD8(start, 1, 1));
    faults();
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&byte, start, 1));
    faults();
    DO(cuMemMap(start, PAGE, 0, handle, 0)); // without access
    DO(launched("fill", start, 1));
    faults();
    DO(cuMemAlloc(&plain, 1));
    DO(cuMemcpyDtoD(plain, start, 1));
    faults();
    open_to_all(start, PAGE);
    DO(launched("fill", start, PAGE));
    DO(cuCtxSynchronize());
    DO(launched("fill", start + PAGE - 1, 2)); // the second byte is bare
    faults();
    DO(let(0, CU_MEM_ACCESS_FLAGS_PROT_NONE, start, PAGE));
    DO(cuMemsetD8(start, 1, 1));
    faults();
    DO(cuMemUnmap(start, PAGE));
    DO(cuMemMap(start, PAGE, 0, handle, 0)); // access must be set anew
    DO(cuMemsetD8(start, 1, 1));
    faults();
    DO(cuMemRelease(handle));
    DO(cuMemUnmap(start, PAGE));
    DO(cuMemAddressFree(start, 4 * PAGE));
}

// A kernel that has reached its memory, and writes when it is told.
static atomic_bool reached, may_write;

static int patient(const struct sim_launch *launch) {
    uint64_t address = 0;
    memcpy(&address, launch->parameters[0], sizeof address);
    char *bytes = launch->reach(address, PAGE);
    reached = true;
    while (!may_write) {
    }
    if (bytes == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    memset(bytes, 'p', PAGE);
    return 0;
}

static void start_patient(CUdeviceptr address) {
    int (*take)(const char *, sim_kernel) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "sim_register_kernel");
    memcpy(&take, &symbol, sizeof take);
    reached = may_write = false;
    CHECK(take("add", patient) == 0);
    DO(launched("add", address, 1));
    while (!reached) {
    }
}

// What waits for a word ends when the word goes.
static void unmapped_under_waits(void) {
    CUdeviceptr start = mapped(PAGE);
    DO(cuStreamWaitValue32(NULL, start, 1, CU_STREAM_WAIT_VALUE_EQ));
    DO(cuMemUnmap(start, PAGE));
    faults();
    DO(cuMemAddressFree(start, PAGE));

    start = mapped(PAGE);
    DO(launched("wait_flag", start, 1));
    DO(cuMemUnmap(start, PAGE));
    faults();
    DO(cuMemAddressFree(start, PAGE));
}

static void unmapped_under_work(void) {
    CUdeviceptr start = mapped(PAGE);
    size_t before = free_bytes();
    start_patient(start);
    DO(cuMemUnmap(start, PAGE)); // does not wait
    CHECK(free_bytes() == before + PAGE);
    DO(cuMemAddressFree(start, PAGE));
    may_write = true;
    faults();

    start = mapped(PAGE);
    start_patient(start);
    DO(let(0, CU_MEM_ACCESS_FLAGS_PROT_NONE, start, PAGE));
    may_write = true;
    faults();
    drop(start, PAGE);

    start = reserved(2 * PAGE);
    CUmemGenericAllocationHandle handle = created(PAGE);
    DO(cuMemMap(start, PAGE, 0, handle, 0));
    DO(cuMemMap(start + PAGE, PAGE, 0, handle, 0));
    DO(cuMemRelease(handle));
    open_to_all(start, 2 * PAGE);
    start_patient(start);
    DO(cuMemUnmap(start + PAGE, PAGE)); // nobody uses the alias
    may_write = true;
    DO(cuCtxSynchronize());
    CHECK(byte_at(start) == 'p' && byte_at(start + PAGE - 1) == 'p');
    DO(cuMemUnmap(start, PAGE));
    DO(cuMemAddressFree(start, 2 * PAGE));
}

// Access is given by device; what cuCtxEnablePeerAccess gives is only for other memory.
static void peers(void) {
    CUcontext here = NULL, there = NULL;
    CUdeviceptr start = mapped(PAGE);
    DO(cuCtxGetCurrent(&here));
    DO(cuCtxCreate(&there, NULL, 0, 1));
    DO(cuCtxEnablePeerAccess(here, 0));
    DO(launched("fill", start, 1));
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    DO(cuCtxDestroy(there));
    DO(cuCtxCreate(&there, NULL, 0, 1));
    DO(cuMemsetD8(start, 1, 1)); // a copy or a set has no more rights
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    DO(cuCtxDestroy(there));
    DO(cuCtxCreate(&there, NULL, 0, 1));
    DO(let(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, start, PAGE));
    DO(launched("fill", start, PAGE));
    DO(cuCtxSynchronize());
    CHECK(byte_at(start + PAGE - 1) == 'k');
    DO(let(0, CU_MEM_ACCESS_FLAGS_PROT_NONE, start, PAGE)); // its own device loses it
    CHECK(byte_at(start) == 'k');
    DO(cuCtxDestroy(there));
    DO(launched("fill", start, 1));
    faults();
    drop(start, PAGE);
}

// ---- what an address tells ----

static unsigned long long told(CUpointer_attribute which, CUdeviceptr address) {
    unsigned long long value = 0; // narrower ones too: little-endian
    DO(cuPointerGetAttribute(&value, which, address));
    return value;
}

static void read_only(void) {
    CUdeviceptr start = mapped(PAGE);
    DO(cuMemsetD8(start, 'r', PAGE));
    DO(cuCtxSynchronize());
    DO(let(0, CU_MEM_ACCESS_FLAGS_PROT_READ, start, PAGE));
    CHECK(byte_at(start) == 'r');
    CHECK(told(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, start) == CU_MEM_ACCESS_FLAGS_PROT_READ);
    DO(cuMemsetD8(start, 'w', 1));
    faults();
    drop(start, PAGE);
}

static void mapped_addresses_tell(CUdeviceptr start, CUdeviceptr base) {
    CUcontext context = NULL;
    CUdeviceptr found = 0;
    size_t size = 0;
    DO(cuMemGetAddressRange(&found, &size, start + 5)); // the mapping
    CHECK(found == start && size == PAGE);
    DO(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, start));
    CHECK(context == NULL);
    ANSWERS(CUDA_ERROR_NOT_SUPPORTED,
            cuPointerSetAttribute(&(unsigned){1}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start));
    CHECK(told(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start) == 0);
    CHECK(told(CU_POINTER_ATTRIBUTE_MAPPED, start + 5) == 1);
    CHECK(told(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, start + 5) == base);
    CHECK(told(CU_POINTER_ATTRIBUTE_RANGE_SIZE, start + 5) == 4 * PAGE);
    CHECK(told(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, start + 5) == start);
    CHECK(told(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, start + 5) == PAGE);
    CHECK(told(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, start) == CU_MEMORYTYPE_DEVICE);
    CHECK(told(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, start) == 0);
    CHECK(told(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, start) == 0);
    CHECK(told(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, start) == 0);
    CHECK(told(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, start) ==
          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CHECK(told(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, start) == 1);
}

static void bare_addresses_tell(CUdeviceptr bare, CUdeviceptr base) {
    CUdeviceptr found = 0;
    size_t size = 0;
    unsigned kind = 0;
    bool is_mapped = true;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_MAPPED};
    DO(cuPointerGetAttributes(3, which, (void *[]){&found, &size, &is_mapped}, bare));
    CHECK(found == base && size == 4 * PAGE && !is_mapped);
    CHECK(told(CU_POINTER_ATTRIBUTE_MAPPED, bare) == 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, bare));
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&found, &size, bare));
}

static void addresses_tell(void) {
    CUmemAllocationProp wanted = on_device;
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr base = reserved(4 * PAGE), start = base + PAGE, alias = base + 2 * PAGE;
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    wanted.allocFlags.gpuDirectRDMACapable = 1;
    DO(cuMemCreate(&handle, PAGE, &wanted, 0));
    DO(cuMemMap(start, PAGE, 0, handle, 0));
    DO(cuMemMap(alias, PAGE, 0, handle, 0));
    DO(cuMemRelease(handle));
    open_to_all(start, PAGE);
    mapped_addresses_tell(start, base);
    mapped_addresses_tell(alias, base);
    bare_addresses_tell(base, base);
    bare_addresses_tell(base + 4 * PAGE - 1, base);
    CHECK(told(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, start) ==
          told(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, alias));
    CHECK(told(CU_POINTER_ATTRIBUTE_BUFFER_ID, start) !=
          told(CU_POINTER_ATTRIBUTE_BUFFER_ID, alias));
    CHECK(told(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, start) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(told(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, alias) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    DO(cuMemUnmap(start, 2 * PAGE));
    DO(cuMemAddressFree(base, 4 * PAGE));
}

static void outlives_contexts(void) {
    size_t before = free_bytes();
    CUdeviceptr memory = mapped(PAGE);
    DO(cuMemsetD8(memory, 's', PAGE));
    new_context();
    CHECK(before - free_bytes() == PAGE && byte_at(memory) == 's');
    drop(memory, PAGE);
    CHECK(free_bytes() == before);
}

// Memory of a chunk need not be contiguous, so holes in cuMemAlloc's addresses do not matter.
static void without_fragmentation(void) {
    CUdeviceptr pages[1024] = {0};
    size_t count = 0, left = free_bytes() / PAGE;
    while (count < 1024 && count < left && cuMemAlloc(&pages[count], PAGE) == CUDA_SUCCESS) {
        count++;
    }
    for (size_t i = 0; i < count; i += 2) {
        DO(cuMemFree(pages[i]));
    }
    CUmemGenericAllocationHandle all = created(free_bytes());
    CHECK(free_bytes() == 0);
    DO(cuMemRelease(all));
    for (size_t i = 1; i < count; i += 2) {
        DO(cuMemFree(pages[i]));
    }
}

int main(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    two_in_one_range();
    alignments();
    refusals();
    aliases();
    outlives_contexts();
    bare_addresses();
    unmapped_under_waits();
    unmapped_under_work();
    peers();
    read_only();
    addresses_tell();
    without_fragmentation();
    return 0;
}

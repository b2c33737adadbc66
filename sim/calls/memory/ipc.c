// Memory shared between processes: legacy handles, and a descriptor for a range.
//
// A handle names the exporting process, its device's file and the allocation's place in it; opening
// maps the same pages here. A handle belongs to an allocation, whichever of its addresses was
// given, and opening it twice in one process gives the same address again. Memory freed by the
// exporter reads as zeros here; on a real device that is undefined. Whether an exported allocation
// still lives stands in a ledger that the exporter shares: a handle of a freed one is refused.
#include "sim/calls/memory/ipc.h"

#include "sim/base/limits.h"
#include "sim/border/border.h"
#include "sim/device/devices.h"
#include "sim/device/thread.h"
#include "sim/memory/allocate.h"
#include "sim/memory/chunk.h"
#include "sim/memory/ledger.h"
#include "sim/memory/window.h"
#include "sim/order/wait.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct token {
    char magic[8];
    int32_t pid, file, device, ledger;
    uint64_t slot, offset, size, id;
};
_Static_assert(sizeof(struct token) <= CU_IPC_HANDLE_SIZE, "a token fits a handle");

static const char magic[8] = "simipc1";
enum { HOST_PAGE = 4096 };

static int open_file_of(int32_t pid, int32_t number, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    return open(path, flags | O_CLOEXEC);
}

static bool lives(const struct token *token) {
    uint64_t id = 0;
    int file = open_file_of(token->pid, token->ledger, O_RDONLY);
    bool read = file >= 0 &&
                pread(file, &id, sizeof id, (off_t)(token->slot * sizeof id)) == (ssize_t)sizeof id;
    if (file >= 0) {
        close(file);
    }
    return read && id == token->id;
}

// ---- handles ----

static CUresult export(CUipcMemHandle *out, CUdeviceptr pointer) {
    struct sim_allocation *allocation = sim_allocation_at(pointer);
    if (out == NULL || allocation == NULL || allocation->kind != SIM_PLAIN) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_ledger_enter(allocation)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct token token = {.pid = (int32_t)getpid(),
                          .file = allocation->device->file,
                          .device = allocation->device->place,
                          .ledger = sim_ledger_file(),
                          .slot = allocation->ledger_slot,
                          .offset = allocation->start - allocation->device->base,
                          .size = allocation->size,
                          .id = allocation->buffer_id};
    memcpy(token.magic, magic, sizeof magic);
    memset(out, 0, sizeof *out);
    memcpy(out->reserved, &token, sizeof token);
    return CUDA_SUCCESS;
}

SIM_CALL(cuIpcGetMemHandle, SIM_CURRENT | SIM_UNSAFE,
         (CUipcMemHandle * handle, CUdeviceptr pointer), export(handle, pointer))

static struct sim_window *opened_before(const CUipcMemHandle *handle) {
    struct sim_window *window = sim_window_first();
    while (window != NULL && (window->opened == 0 ||
                              memcmp(window->token, handle->reserved, CU_IPC_HANDLE_SIZE) != 0)) {
        window = window->next;
    }
    return window;
}

static CUresult map_import(const struct token *token, int file, struct sim_window **out) {
    uint64_t skip = token->offset % HOST_PAGE;
    size_t bytes = (size_t)((skip + token->size + HOST_PAGE - 1) / HOST_PAGE * HOST_PAGE);
    struct sim_window *window = sim_window_new(bytes, SIM_PAGE);
    if (window == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_mapping *mapping =
        sim_window_map(window, window->start, bytes, file, (off_t)(token->offset - skip));
    if (mapping == NULL) {
        sim_window_drop(window);
        return CUDA_ERROR_MAP_FAILED;
    }
    mapping->as.start += skip;
    mapping->as.size = token->size;
    mapping->as.kind = SIM_IMPORTED;
    mapping->as.context = sim_current();
    mapping->as.device = sim_device_in(token->device);
    mapping->access = mapping->writes = ~0u;
    *out = window;
    return CUDA_SUCCESS;
}

static CUresult open_handle(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags) {
    struct token token;
    memcpy(&token, handle->reserved, sizeof token);
    if (out == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
        memcmp(token.magic, magic, sizeof magic) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (token.pid == (int32_t)getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT; // "the exporting process cannot open its own"
    }
    if (sim_device_in(token.device) == NULL) {
        return CUDA_ERROR_MAP_FAILED;
    }
    if (!lives(&token)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    struct sim_window *window = opened_before(handle);
    if (window == NULL) {
        int file = open_file_of(token.pid, token.file, O_RDWR);
        CUresult result = file < 0 ? CUDA_ERROR_INVALID_VALUE : map_import(&token, file, &window);
        if (file >= 0) {
            close(file);
        }
        if (result != CUDA_SUCCESS) {
            return result;
        }
        memcpy(window->token, handle->reserved, CU_IPC_HANDLE_SIZE);
    }
    window->opened++;
    *out = window->mappings->as.start;
    return CUDA_SUCCESS;
}

SIM_CALL(cuIpcOpenMemHandle, SIM_CURRENT | SIM_UNSAFE,
         (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags),
         open_handle(out, &handle, flags))
SIM_CALL(cuIpcOpenMemHandle_v2, SIM_CURRENT | SIM_UNSAFE,
         (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags),
         open_handle(out, &handle, flags))

static void end(struct sim_window *window) {
    sim_window_unmap(window, window->mappings);
    sim_window_drop(window);
}

static CUresult close_handle(CUdeviceptr pointer) {
    struct sim_window *window = sim_window_at(pointer);
    if (window == NULL || window->opened == 0 || window->mappings->as.start != pointer) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (--window->opened > 0) {
        return CUDA_SUCCESS;
    }
    sim_devices_finish();
    end(window);
    return CUDA_SUCCESS;
}

SIM_CALL(cuIpcCloseMemHandle, SIM_CURRENT | SIM_UNSAFE, (CUdeviceptr pointer),
         close_handle(pointer))

void sim_context_imports_end(const struct CUctx_st *context) {
    struct sim_window *next = NULL;
    for (struct sim_window *w = sim_window_first(); w != NULL; w = next) {
        next = w->next;
        if (w->opened > 0 && w->mappings->as.context == context) {
            end(w);
        }
    }
}

// ---- dma-buf ----

// A real one describes the range alone; this is the device's whole file, positioned where the range
// begins.
static int open_range(const struct sim_allocation *allocation, CUdeviceptr pointer) {
    int file = open_file_of((int32_t)getpid(), allocation->device->file, O_RDWR);
    if (file >= 0) {
        lseek(file, (off_t)(pointer - allocation->device->base), SEEK_SET);
    }
    return file;
}

// "All the physical allocations backing the address range must be resident on the same device and
// have identical allocation properties."
static bool alike(const struct sim_chunk *one, const struct sim_chunk *two) {
    return one->device == two->device && one->store == two->store &&
           memcmp(&one->properties, &two->properties, sizeof one->properties) == 0;
}

// The chunks behind a range of a reservation, in order; 0: not all is mapped, or not alike.
static size_t chunks_behind(const struct sim_window *window, CUdeviceptr pointer, size_t size,
                            struct sim_chunk **chunks) {
    const struct sim_mapping *mapping = NULL;
    size_t count = 0;
    for (uintptr_t at = pointer; at - pointer < size; at = mapping->as.start + mapping->as.size) {
        mapping = sim_window_mapping(window, at);
        if (mapping == NULL || (count > 0 && !alike(chunks[0], mapping->chunk))) {
            return 0;
        }
        chunks[count++] = mapping->chunk;
    }
    return count;
}

static CUresult open_mapped(int *file, const struct sim_window *window, CUdeviceptr pointer,
                            size_t size) {
    if (size > window->size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_chunk **chunks = malloc((size / SIM_PAGE + 2) * sizeof(struct sim_chunk *));
    if (chunks == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t count = chunks_behind(window, pointer, size, chunks);
    if (count > 0) {
        const struct sim_mapping *first = sim_window_mapping(window, pointer);
        *file = sim_chunk_describe(chunks, count, pointer - first->as.start);
    }
    free(chunks);
    return count == 0  ? CUDA_ERROR_INVALID_VALUE
           : *file < 0 ? CUDA_ERROR_OUT_OF_MEMORY
                       : CUDA_SUCCESS;
}

static CUresult open_allocated(int *file, CUdeviceptr pointer, size_t size) {
    const struct sim_allocation *allocation = sim_allocation_at(pointer);
    if (allocation == NULL || allocation->kind != SIM_PLAIN ||
        size > allocation->taken - (pointer - allocation->start)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *file = open_range(allocation, pointer);
    return *file < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult range_handle(void *out, CUdeviceptr pointer, size_t size, CUmemRangeHandleType type,
                             unsigned long long flags) {
    if (out == NULL || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags > 1 || size == 0 ||
        pointer % HOST_PAGE != 0 || size % HOST_PAGE != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int file = -1;
    const struct sim_window *window = sim_window_at(pointer);
    CUresult result = window != NULL && window->opened == 0
                          ? open_mapped(&file, window, pointer, size)
                          : open_allocated(&file, pointer, size);
    if (result == CUDA_SUCCESS) {
        memcpy(out, &file, sizeof file);
    }
    return result;
}

SIM_CALL(cuMemGetHandleForAddressRange, SIM_CURRENT,
         (void *out, CUdeviceptr pointer, size_t size, CUmemRangeHandleType type,
          unsigned long long flags),
         range_handle(out, pointer, size, type, flags))

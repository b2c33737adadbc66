// Copies and sets.
//
// One piece of work serves them all: rows of bytes between two places with pitches. Whether the
// host waits follows the guide's "API synchronization behavior": copies from device to device and
// sets do not wait, even in their synchronous form; pageable host memory is read before an
// asynchronous copy returns, and written before it returns; pinned host memory is touched later.
#include "sim/calls/memory/copy.h"

#include "sim/base/lock.h"
#include "sim/border/border.h"
#include "sim/calls/memory/place.h"
#include "sim/device/context.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/device/thread.h"
#include "sim/memory/allocate.h"
#include "sim/memory/ranges.h"
#include "sim/memory/reach.h"
#include "sim/memory/window.h"
#include "sim/order/capture.h"
#include "sim/order/mark.h"
#include "sim/order/meant.h"
#include "sim/order/queue.h"
#include "sim/order/stream.h"
#include "sim/order/wait.h"

#include <stdlib.h>
#include <string.h>

struct copy {
    struct sim_work work;
    struct sim_place to, from;
    struct sim_extent extent;
    const struct sim_device *to_device, *from_device; // of peer copies: each reaches its own side
    unsigned value;                                   // sets: what, and of how many bytes
    size_t element;                                   // 0: a copy
    char *staged;                                     // pageable bytes, taken at the call
};

static size_t span_of(const struct sim_place *place, const struct sim_extent *extent) {
    if (extent->width == 0 || extent->height == 0 || extent->depth == 0) {
        return 0;
    }
    return (extent->depth - 1) * place->slice + (extent->height - 1) * place->pitch + extent->width;
}

// ---- doing it ----

static void set_row(char *to, const struct copy *copy) {
    if (copy->element == 1) {
        memset(to, (int)copy->value, copy->extent.width);
        return;
    }
    for (size_t i = 0; i + copy->element <= copy->extent.width; i += copy->element) {
        memcpy(to + i, &copy->value, copy->element); // little-endian, as the device is
    }
}

static void do_rows(const struct copy *copy, char *to, const char *from) {
    for (size_t z = 0; z < copy->extent.depth; z++) {
        for (size_t y = 0; y < copy->extent.height; y++) {
            char *row = to + z * copy->to.slice + y * copy->to.pitch;
            if (copy->element != 0) {
                set_row(row, copy);
            } else {
                memmove(row, from + z * copy->from.slice + y * copy->from.pitch,
                        copy->extent.width);
            }
        }
    }
}

static char *reach_to(const struct copy *copy) {
    size_t span = span_of(&copy->to, &copy->extent);
    sim_self()->reaching = copy->to_device;
    bool barred = sim_virtual_at(copy->to.start) && !sim_virtual_writable(copy->to.start, span);
    char *to = barred ? NULL : sim_reach(copy->to.start, span);
    sim_self()->reaching = NULL;
    return to;
}

static char *reach_from(const struct copy *copy) {
    sim_self()->reaching = copy->from_device;
    char *from = sim_reach(copy->from.start, span_of(&copy->from, &copy->extent));
    sim_self()->reaching = NULL;
    return from;
}

static CUresult run(struct sim_work *work) {
    struct copy *copy = (struct copy *)work;
    sim_lock_take();
    char *to = reach_to(copy);
    const char *from = copy->staged != NULL ? copy->staged
                       : copy->element != 0 ? to
                                            : reach_from(copy);
    sim_lock_give();
    if (to == NULL || from == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    do_rows(copy, to, from);
    return CUDA_SUCCESS;
}

static void drop(struct sim_work *work) {
    struct copy *copy = (struct copy *)work;
    free(copy->staged);
    free(copy);
}

static struct sim_work *repeat(const struct sim_work *work) {
    struct copy *copy = malloc(sizeof *copy);
    if (copy != NULL) {
        memcpy(copy, work, sizeof *copy);
    }
    return copy != NULL ? &copy->work : NULL;
}

static const struct sim_work_type copy_type = {
    .run = run, .drop = drop, .clone = repeat, .node = CU_GRAPH_NODE_TYPE_MEMCPY};
static const struct sim_work_type set_type = {
    .run = run, .drop = drop, .clone = repeat, .node = CU_GRAPH_NODE_TYPE_MEMSET};

// ---- what a call means ----

static bool on_device(uintptr_t address) {
    return sim_device_at(address) != NULL || sim_virtual_at(address);
}

static bool pageable(uintptr_t address) {
    return !on_device(address) && sim_host_at(address) == NULL;
}

// A device span must lie within one live allocation; a host pointer is taken at its word, and so
// are addresses that the program maps itself: what is there is only known when the copy runs.
static bool span_valid(uintptr_t start, size_t bytes) {
    if (!on_device(start)) {
        return start != 0 || bytes == 0;
    }
    if (sim_virtual_at(start)) {
        return sim_window_at(start)->opened == 0 || sim_virtual_reach(start, bytes) != NULL;
    }
    const struct sim_allocation *allocation = sim_allocation_at(start);
    return allocation != NULL && bytes <= allocation->size - (start - allocation->start);
}

static bool stage(struct copy *copy) {
    size_t span = span_of(&copy->from, &copy->extent);
    copy->staged = malloc(span);
    if (copy->staged == NULL) {
        return false;
    }
    memcpy(copy->staged, (const void *)copy->from.start, span);
    return true;
}

// "Ensures that synchronous memory operations initiated on the memory region ... will always
// synchronize." (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
static bool synchronizes(uintptr_t address) {
    const struct sim_allocation *allocation = sim_allocation_at(address);
    const struct sim_host_range *range = allocation == NULL ? sim_host_at(address) : NULL;
    return (allocation != NULL && allocation->sync_memops) || (range != NULL && range->sync_memops);
}

// Host memory on both sides: always. Otherwise as the guide's "API synchronization behavior" has
// it.
static bool must_wait(const struct copy *copy, enum sim_wait wanted) {
    bool to_device = on_device(copy->to.start);
    bool from_device = copy->element == 0 && on_device(copy->from.start);
    if (wanted == SIM_WAIT &&
        ((sim_current()->flags & CU_CTX_SYNC_MEMOPS) != 0 || synchronizes(copy->to.start) ||
         (copy->element == 0 && synchronizes(copy->from.start)))) {
        return true;
    }
    if (copy->element != 0) {
        return wanted == SIM_WAIT && !to_device;
    }
    if (!to_device && !from_device) {
        return true;
    }
    return wanted == SIM_WAIT ? !(to_device && from_device)
                              : !to_device && pageable(copy->to.start);
}

// A graph reads and writes host memory when it runs. What the host would wait for cannot be
// captured.
static CUresult submit_captured(struct CUstream_st *stream, struct copy *copy,
                                enum sim_wait wanted) {
    CUresult result =
        must_wait(copy, wanted) && wanted == SIM_WAIT ? sim_capture_refuses_stream(stream) : 0;
    if (result != CUDA_SUCCESS) {
        free(copy);
        return result;
    }
    return sim_submit(stream, &copy->work);
}

static const struct sim_device *device_of(uintptr_t address) {
    const struct sim_allocation *allocation = sim_allocation_at(address);
    return allocation != NULL ? allocation->device : NULL;
}

// "A copy (in the implicit NULL stream) between the memories of two different devices does not
// start until all commands previously issued to either device have completed and runs to completion
// before any commands issued after the copy to either device can start."
static CUresult submit_between(struct CUstream_st *stream, struct copy *copy) {
    const struct sim_device *to = device_of(copy->to.start), *from = device_of(copy->from.start);
    for (struct CUctx_st *c = sim_context_next(NULL); c != NULL; c = sim_context_next(c)) {
        if (c->alive && c->parent == NULL && (c->device == to || c->device == from)) {
            sim_context_marks(c, &copy->work.waits);
        }
    }
    CUresult result = sim_submit(stream, &copy->work);
    for (struct CUctx_st *c = sim_context_next(NULL); c != NULL; c = sim_context_next(c)) {
        if (result == CUDA_SUCCESS && c->alive && c->parent == NULL &&
            (c->device == to || c->device == from)) {
            sim_marks_add(&c->barrier, stream, stream->submitted);
        }
    }
    return result;
}

static bool between_devices(const struct CUstream_st *stream, const struct copy *copy) {
    const struct sim_device *to = device_of(copy->to.start);
    const struct sim_device *from = copy->element == 0 ? device_of(copy->from.start) : to;
    return stream == stream->context->legacy && to != NULL && from != NULL && to != from;
}

static CUresult issue(const struct copy *what, CUstream handle, bool per_thread,
                      enum sim_wait wanted) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL) {
        return result;
    }
    size_t bytes = span_of(&what->to, &what->extent);
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    if (!span_valid(what->to.start, bytes) ||
        (what->element == 0 &&
         !span_valid(what->from.start, span_of(&what->from, &what->extent)))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct copy *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *copy = *what;
    copy->work.type = copy->element != 0 ? &set_type : &copy_type;
    if (sim_capturing(stream)) {
        return submit_captured(stream, copy, wanted);
    }
    bool wait = must_wait(copy, wanted);
    if (!wait && copy->element == 0 && pageable(copy->from.start) && !stage(copy)) {
        free(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = between_devices(stream, copy) ? submit_between(stream, copy)
                                           : sim_submit(stream, &copy->work);
    return result == CUDA_SUCCESS && wait ? sim_stream_finish(stream) : result;
}

CUresult sim_copy_issue(const struct sim_place *to, const struct sim_place *from,
                        const struct sim_extent *extent, CUstream stream, bool per_thread,
                        enum sim_wait wait) {
    struct copy copy = {.to = *to, .from = *from, .extent = *extent};
    return issue(&copy, stream, per_thread, wait);
}

struct sim_work *sim_copy_work(const struct sim_place *to, const struct sim_place *from,
                               const struct sim_extent *extent) {
    struct copy *copy = calloc(1, sizeof *copy);
    if (copy != NULL) {
        *copy = (struct copy){.to = *to, .from = *from, .extent = *extent};
        copy->work.type = &copy_type;
    }
    return copy != NULL ? &copy->work : NULL;
}

CUresult sim_set_new(const CUDA_MEMSET_NODE_PARAMS *p, struct sim_work **out) {
    if (p == NULL || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) ||
        sim_reach(p->dst, p->width * p->elementSize) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *copy = (struct copy){
        .to = {.start = p->dst, .pitch = p->pitch},
        .extent = {.width = p->width * p->elementSize, .height = p->height, .depth = 1},
        .value = p->value,
        .element = p->elementSize};
    copy->work.type = &set_type;
    *out = &copy->work;
    return CUDA_SUCCESS;
}

static CUresult copy_line(uintptr_t to, uintptr_t from, size_t bytes, CUstream stream,
                          bool per_thread, enum sim_wait wait) {
    struct copy copy = {.to = {.start = to},
                        .from = {.start = from},
                        .extent = {.width = bytes, .height = 1, .depth = 1}};
    return issue(&copy, stream, per_thread, wait);
}

static CUresult set_rows(uintptr_t to, size_t pitch, unsigned value, size_t element, size_t width,
                         size_t height, CUstream stream, bool per_thread, enum sim_wait wait) {
    struct copy copy = {.to = {.start = to, .pitch = pitch},
                        .extent = {.width = width * element, .height = height, .depth = 1},
                        .value = value,
                        .element = element};
    if (to % element != 0 || width > SIZE_MAX / element ||
        (width * height != 0 && !on_device(to) && sim_host_at(to) == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return issue(&copy, stream, per_thread, wait);
}

// ---- the API: one row ----

SIM_PAIR(cuMemcpy, cuMemcpy_ptds, SIM_CURRENT, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
         copy_line(to, from, bytes, NULL, per_thread, SIM_WAIT))
// Of before CUDA 3.2, with 32-bit pointers and sizes.
SIM_CALL(cuMemcpyHtoD, SIM_CURRENT, (CUdeviceptr_v1 to, const void *from, unsigned bytes),
         copy_line(to, (uintptr_t)from, bytes, NULL, false, SIM_WAIT))
SIM_CALL(cuMemcpyDtoH, SIM_CURRENT, (void *to, CUdeviceptr_v1 from, unsigned bytes),
         copy_line((uintptr_t)to, from, bytes, NULL, false, SIM_WAIT))
SIM_CALL(cuMemcpyDtoD, SIM_CURRENT, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned bytes),
         copy_line(to, from, bytes, NULL, false, SIM_WAIT))
SIM_PAIR(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, const void *from, size_t bytes),
         copy_line(to, (uintptr_t)from, bytes, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, SIM_CURRENT,
         (void *to, CUdeviceptr from, size_t bytes),
         copy_line((uintptr_t)to, from, bytes, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, CUdeviceptr from, size_t bytes),
         copy_line(to, from, bytes, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpyAsync, cuMemcpyAsync_ptsz, SIM_CURRENT,
         (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
         copy_line(to, from, bytes, stream, per_thread, SIM_LATER))
SIM_PAIR(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, SIM_CURRENT,
         (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
         copy_line(to, (uintptr_t)from, bytes, stream, per_thread, SIM_LATER))
SIM_PAIR(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, SIM_CURRENT,
         (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
         copy_line((uintptr_t)to, from, bytes, stream, per_thread, SIM_LATER))
SIM_PAIR(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, SIM_CURRENT,
         (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
         copy_line(to, from, bytes, stream, per_thread, SIM_LATER))

// Between devices of one process addresses say all, but for whose access counts.
static CUresult copy_between(uintptr_t to, CUcontext to_context, uintptr_t from,
                             CUcontext from_context, size_t bytes, CUstream stream, bool per_thread,
                             enum sim_wait wait) {
    if (!sim_context_known(to_context) || !sim_context_known(from_context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    struct copy copy = {.to = {.start = to},
                        .from = {.start = from},
                        .extent = {.width = bytes, .height = 1, .depth = 1},
                        .to_device = to_context->device,
                        .from_device = from_context->device};
    return issue(&copy, stream, per_thread, wait);
}

SIM_PAIR(cuMemcpyPeer, cuMemcpyPeer_ptds, SIM_CURRENT,
         (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
          size_t bytes),
         copy_between(to, to_context, from, from_context, bytes, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz, SIM_CURRENT,
         (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
          size_t bytes, CUstream stream),
         copy_between(to, to_context, from, from_context, bytes, stream, per_thread, SIM_LATER))

// ---- the API: batches ----

// One after another, which is one of the orders that a batch may have. The access order of sources
// changes nothing here: pageable ones are read before the call returns.
static CUresult copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
                           size_t count, const CUmemcpyAttributes *attributes, const size_t *first,
                           size_t attribute_count, CUstream stream, bool per_thread,
                           size_t *failed) {
    size_t unknown = 0;
    failed = failed != NULL ? failed : &unknown;
    *failed = SIZE_MAX;
    if (to == NULL || from == NULL || bytes == NULL || count == 0 || attributes == NULL ||
        first == NULL || attribute_count == 0 || attribute_count > count || first[0] != 0 ||
        stream == NULL || stream == CU_STREAM_LEGACY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        CUresult result = copy_line(to[i], from[i], bytes[i], stream, per_thread, SIM_LATER);
        if (result != CUDA_SUCCESS) {
            *failed = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

SIM_PAIR(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz, SIM_CURRENT,
         (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count,
          CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count, size_t *failed,
          CUstream stream),
         copy_batch(to, from, bytes, count, attributes, first, attribute_count, stream, per_thread,
                    failed))
SIM_PAIR(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz, SIM_CURRENT,
         (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count,
          CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count, CUstream stream),
         copy_batch(to, from, bytes, count, attributes, first, attribute_count, stream, per_thread,
                    NULL))

// ---- the API: sets ----

SIM_CALL(cuMemsetD8, SIM_CURRENT, (CUdeviceptr_v1 to, unsigned char value, unsigned count),
         set_rows(to, count, value, 1, count, 1, NULL, false, SIM_WAIT))
SIM_PAIR(cuMemsetD8_v2, cuMemsetD8_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, unsigned char value, size_t count),
         set_rows(to, count, value, 1, count, 1, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemsetD16_v2, cuMemsetD16_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, unsigned short value, size_t count),
         set_rows(to, count, value, 2, count, 1, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemsetD32_v2, cuMemsetD32_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, unsigned value, size_t count),
         set_rows(to, count, value, 4, count, 1, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),
         set_rows(to, pitch, value, 1, width, height, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),
         set_rows(to, pitch, value, 2, width, height, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height),
         set_rows(to, pitch, value, 4, width, height, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemsetD8Async, cuMemsetD8Async_ptsz, SIM_CURRENT,
         (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),
         set_rows(to, count, value, 1, count, 1, stream, per_thread, SIM_LATER))
SIM_PAIR(cuMemsetD16Async, cuMemsetD16Async_ptsz, SIM_CURRENT,
         (CUdeviceptr to, unsigned short value, size_t count, CUstream stream),
         set_rows(to, count, value, 2, count, 1, stream, per_thread, SIM_LATER))
SIM_PAIR(cuMemsetD32Async, cuMemsetD32Async_ptsz, SIM_CURRENT,
         (CUdeviceptr to, unsigned value, size_t count, CUstream stream),
         set_rows(to, count, value, 4, count, 1, stream, per_thread, SIM_LATER))
SIM_PAIR(cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz, SIM_CURRENT,
         (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
          CUstream stream),
         set_rows(to, pitch, value, 1, width, height, stream, per_thread, SIM_LATER))
SIM_PAIR(cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz, SIM_CURRENT,
         (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
          CUstream stream),
         set_rows(to, pitch, value, 2, width, height, stream, per_thread, SIM_LATER))
SIM_PAIR(cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz, SIM_CURRENT,
         (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
          CUstream stream),
         set_rows(to, pitch, value, 4, width, height, stream, per_thread, SIM_LATER))

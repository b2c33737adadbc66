/* Frees for the program. bfc_free and bfc_free_hit free blocks in the arena that the thread used
 * last, while both flags of enum bfc_usual are set; free_with_all_checks serves all other frees. */
#include "base/compiler.h"
#include "interpose/api/memory.h"
#include "interpose/arena/bypassed.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/pointers/block_attributes.h"
#include "interpose/pointers/export_handle.h"
#include "interpose/reuse/free_modes.h"
#include "interpose/stats/events.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/feature.h"

/* The error with which bfc_free_hit has answered a cudaFree. The library then calls the runtime's
 * cudaFree, which is to learn of the error too. That calls the driver's free, whose hook bfc_free
 * finds here what to return. */
static __thread struct {
    CUdeviceptr pointer; /* the address of which the free has failed; 0: there is none */
    CUresult result;
} answered INITIAL_EXEC;

void bfc_free_answered(CUdeviceptr pointer, CUresult result) {
    answered.pointer = pointer;
    answered.result = result;
}

/* A call of the program that frees: cuMemFree or cuMemFreeAsync. */
struct free_call {
    const struct bfc_driver *driver;
    CUdeviceptr pointer;
    /* whether it is cuMemFreeAsync; if not, `stream` and `per_thread` have no meaning */
    bool in_stream_order;
    CUstream stream;
    bool per_thread;
};

static NOINLINE CUresult free_as_unusual(CUdeviceptr pointer);

CUresult bfc_free(CUdeviceptr pointer) {
    struct bfc_arena *arena;
    if (UNLIKELY(!bfc_process_is_usual() || bfc_block_attributes_exist() || bfc_captures_exist() ||
                 answered.pointer || !(arena = bfc_arena_if_last(pointer))))
        return free_as_unusual(pointer);
    return bfc_reuse_free_by_mode(bfc_driver_found, arena, pointer);
}

bool bfc_free_hit(CUdeviceptr pointer, unsigned long long context, CUresult *result) {
    if (!bfc_process_is_usual() || bfc_block_attributes_exist() || bfc_captures_exist())
        return false;
    const struct bfc_driver *driver = bfc_driver_found;
    struct bfc_arena *arena = bfc_arena_last_if_holds(driver, context, pointer);
    if (!arena)
        return false;
    *result = bfc_reuse_free_in_current(driver, arena, pointer);
    return true;
}

static CUresult free_of_arena(const struct free_call *call, struct bfc_arena *arena) {
    uint64_t start = bfc_events_start(BFC_TIMED_FREES);
    uint64_t attributed = bfc_exports_attributed(arena, call->pointer);
    CUresult result = call->in_stream_order
                          ? bfc_reuse_free_async(call->driver, arena, call->pointer, call->stream,
                                                 call->per_thread)
                          : bfc_reuse_free(call->driver, arena, call->pointer);
    if (result == CUDA_SUCCESS && attributed)
        bfc_exports_freed(attributed);
    if (result == CUDA_SUCCESS)
        bfc_events_add_free(&arena->stats, call->pointer, start);
    if (result == CUDA_ERROR_INVALID_VALUE)
        bfc_events_add_landmark(&arena->stats, BFC_EVENT_INVALID_FREE, call->pointer, 0);
    return result;
}

static CUresult call_driver(const struct free_call *call) {
    const struct bfc_driver *driver = call->driver;
    if (call->in_stream_order)
        return call->per_thread ? driver->cuMemFreeAsync_ptsz(call->pointer, call->stream)
                                : driver->cuMemFreeAsync(call->pointer, call->stream);
    CUresult result = driver->cuMemFree_v2(call->pointer);
    bool refused = result == CUDA_ERROR_INVALID_VALUE;
    bfc_segment_count_forwarded_free(!call->pointer ? BFC_FORWARD_BAD_CALL
                                     : refused      ? BFC_FORWARD_REFUSED
                                                    : BFC_FORWARD_FOREIGN);
    return result;
}

static CUresult free_with_all_checks(const struct free_call *call) {
    if (bfc_process_if_made())
        BFC_TELL_FEATURES(freeing, call->pointer, call->stream);
    struct bfc_arena *arena = bfc_process_if_made() ? bfc_arena_living_of(call->pointer) : NULL;
    CUresult result = arena ? free_of_arena(call, arena) : call_driver(call);
    if (!bfc_process_if_made())
        return result;
    if (!arena && result == CUDA_SUCCESS)
        bfc_bypassed_freed(call->pointer);
    if (arena || !call->in_stream_order)
        BFC_TELL_FEATURES(freed, arena, call->pointer, result, !call->in_stream_order);
    return result;
}

/* Serves the frees that bfc_free does not: in an unusual state of the process, during captures,
 * with block attributes (block_attributes.h), or outside the arena that the thread used last. */
static NOINLINE CUresult free_as_unusual(CUdeviceptr pointer) {
    BFC_FIND_DRIVER(driver, cuMemFree_v2);
    if (answered.pointer && answered.pointer == pointer)
        return answered.result;
    return free_with_all_checks(&(struct free_call){.driver = driver, .pointer = pointer});
}

CUresult bfc_free_async(const struct bfc_driver *driver, CUdeviceptr pointer, CUstream stream,
                        bool per_thread) {
    return free_with_all_checks(&(struct free_call){.driver = driver,
                                                    .pointer = pointer,
                                                    .in_stream_order = true,
                                                    .stream = stream,
                                                    .per_thread = per_thread});
}

/* A pooled pointer is not passed to the driver, which could free a whole region. The program gets
 * the error with which the driver refuses to free device memory as host memory. */
CUresult bfc_free_host(const struct bfc_driver *driver, void *memory) {
    bool pooled = bfc_process_if_made() && bfc_arena_living_of((CUdeviceptr)memory);
    return pooled ? CUDA_ERROR_INVALID_VALUE : driver->cuMemFreeHost(memory);
}

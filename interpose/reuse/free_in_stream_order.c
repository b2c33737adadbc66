/* Frees in the order of a stream (cuMemFreeAsync). */
#include "interpose/arena/stream_frees.h"
#include "interpose/context/green.h"
#include "interpose/driver/current.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/free_modes.h"

static struct bfc_stream_calls stream_calls(const struct bfc_driver *driver, bool per_thread) {
    if (per_thread)
        return (struct bfc_stream_calls){driver->cuStreamGetCtx_ptsz, driver->cuStreamGetId_ptsz,
                                         driver->cuStreamIsCapturing_ptsz,
                                         driver->cuEventRecord_ptsz,
                                         driver->cuStreamSynchronize_ptsz};
    return (struct bfc_stream_calls){driver->cuStreamGetCtx, driver->cuStreamGetId,
                                     driver->cuStreamIsCapturing, driver->cuEventRecord,
                                     driver->cuStreamSynchronize};
}

/* Frees the block after the host has waited for the stream. This serves drivers without events, and
 * those before CUDA 9.2, which cannot tell a stream's context. */
static CUresult free_after_stream(const struct bfc_driver *driver, struct bfc_arena *arena,
                                  CUdeviceptr pointer, const struct bfc_stream_calls *calls,
                                  CUstream stream) {
    CUresult result = calls->synchronize ? calls->synchronize(stream) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? bfc_reuse_free(driver, arena, pointer) : result;
}

/* Frees the block under a fence over all work of the stream's context, because no event could be
 * recorded in the stream. */
static CUresult free_after_context(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdeviceptr pointer, CUcontext context) {
    CUresult result = CUDA_SUCCESS;
    /* The stream belongs to another context. That context uses the block, so it counts as a peer
     * from now on. */
    if (context != arena->context)
        result = bfc_peers_add(context, arena->context);
    if (result != CUDA_SUCCESS)
        return result;
    return bfc_reuse_free_with_fence(driver, arena, pointer);
}

static CUresult free_in_order(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdeviceptr pointer, CUstream stream, bool per_thread) {
    struct bfc_stream_calls calls = stream_calls(driver, per_thread);
    if (!calls.get_context || !calls.record || !driver->cuEventCreate || !driver->cuEventQuery)
        return free_after_stream(driver, arena, pointer, &calls, stream);
    CUcontext context = NULL;
    CUresult result = calls.get_context(stream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!bfc_pool_is_live(arena->pool, pointer)) {
        bfc_pool_count_invalid_free(arena->pool, pointer);
        return CUDA_ERROR_INVALID_VALUE;
    }
    context = bfc_green_owner(driver, context);
    bfc_reuse_context_made(driver, context);
    result = bfc_stream_frees_free(driver, arena, pointer, &calls, stream, context);
    if (result == CUDA_SUCCESS)
        bfc_stream_frees_poll(driver, arena);
    else if (arena->fences &&
             (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_OUT_OF_MEMORY))
        result = free_after_context(driver, arena, pointer, context);
    return context == arena->context ? bfc_reuse_latch(arena, result) : result;
}

/* cuMemFreeAsync needs no current context if the program has created the stream. The driver calls
 * made here need one, so if none is current, the arena's context is made current. */
CUresult bfc_reuse_free_async(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdeviceptr pointer, CUstream stream, bool per_thread) {
    CUcontext current = NULL;
    bool created = stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
    bool pushed = created && driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS && !current &&
                  driver->cuCtxPushCurrent_v2(arena->context) == CUDA_SUCCESS;
    CUresult result = free_in_order(driver, arena, pointer, stream, per_thread);
    bfc_current_leave(driver, pushed);
    return result;
}

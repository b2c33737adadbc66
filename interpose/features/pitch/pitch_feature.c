/*
 * The feature `pitch`: pitched memory comes from the pool (cuMemAllocPitch, which cudaMallocPitch
 * and cudaMalloc3D call).
 *
 * While the pitch for rows of some width is not known, the driver serves the call, and its answer
 * tells that pitch. Later calls for such rows get blocks of the pool. So the library need not
 * allocate and free memory only to learn a pitch.
 */
#include "interpose/api/forward_allocation.h"
#include "interpose/api/memory.h"
#include "interpose/api/open_arena.h"
#include "interpose/arena/bypassed.h"
#include "interpose/context/capture.h"
#include "interpose/features/pitch/pitches.h"
#include "interpose/table/feature.h"

/* Whether the arguments are plainly valid. Those that are not go to the driver, which judges
 * them. */
static bool is_plain(const CUdeviceptr *pointer, const size_t *pitch, size_t width, size_t height,
                     unsigned element) {
    size_t bytes;
    return pointer && pitch && width && height && bfc_is_element(element) &&
           !__builtin_add_overflow(width, BFC_GRANULE, &bytes) &&
           !__builtin_mul_overflow(bytes, height, &bytes);
}

/* Returns the arena that may serve the call; NULL: the driver must serve the call. */
static struct bfc_arena *find_arena(const struct bfc_driver *driver) {
    const struct bfc_process *process = bfc_process();
    enum bfc_forward_reason reason;
    if (!process || !process->serves || !driver->can_pool || !driver->cuMemGetAddressRange_v2 ||
        bfc_capture_state(driver) == BFC_CAPTURE_BARRED)
        return NULL;
    return bfc_current_arena(driver, &reason);
}

/* Whether a block of the pool can take the place of what the driver gave. It can if the pool's
 * alignment is enough for textures, and if the driver's range has exactly the bytes of all rows,
 * since cuMemGetAddressRange reports that size for a block of the pool. */
static bool is_as_ours(const struct bfc_driver *driver, CUdevice device, CUdeviceptr pointer,
                       uint64_t bytes) {
    int alignment = 0;
    CUdeviceptr start = 0;
    size_t size = 0;
    return driver->cuDeviceGetAttribute(&alignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
                                        device) == CUDA_SUCCESS &&
           alignment > 0 && BFC_GRANULE % (unsigned)alignment == 0 &&
           driver->cuMemGetAddressRange_v2(&start, &size, pointer) == CUDA_SUCCESS &&
           start == pointer && size == bytes;
}

/* Has the driver serve the call, and learns the pitch from its answer. BFC_LIMIT is charged before
 * the call, as if the pitch were the width rounded up to the pool's granule. If BFC_LIMIT leaves
 * too little, the call fails; but where the feature `spill` is on, the driver serves it
 * nevertheless, since the host memory that would serve it instead has no pitch to learn. */
static CUresult ask_driver(const struct bfc_driver *driver, struct bfc_arena *arena,
                           CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                           unsigned element) {
    uint64_t charged = (width + BFC_GRANULE - 1) / BFC_GRANULE * BFC_GRANULE * height;
    CUdevice device = arena->device;
    bool is_charged = bfc_forward_charge(arena, charged);
    if (!is_charged && !bfc_process()->options.spill)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = driver->cuMemAllocPitch_v2(pointer, pitch, width, height, element);
    if (is_charged)
        bfc_bypassed_note(arena, result == CUDA_SUCCESS ? *pointer : 0, charged);
    if (result != CUDA_SUCCESS)
        return result;
    bfc_count_past_pool(BFC_BYPASS_PITCH, *pointer, *pitch * height);
    if (is_as_ours(driver, device, *pointer, *pitch * height))
        bfc_pitch_learn(device, element, width, *pitch);
    return result;
}

static bool allocate_pitched(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t *pitch,
                             size_t width, size_t height, unsigned element, CUresult *result) {
    size_t bytes;
    struct bfc_arena *arena =
        is_plain(pointer, pitch, width, height, element) ? find_arena(driver) : NULL;
    if (!arena)
        return false;
    size_t row = bfc_pitch_known(arena->device, element, width);
    if (__builtin_mul_overflow(row, height, &bytes))
        return false;
    if (!row)
        *result = ask_driver(driver, arena, pointer, pitch, width, height, element);
    else if ((*result = bfc_allocate(pointer, bytes)) == CUDA_SUCCESS)
        *pitch = row;
    return true;
}

static const struct bfc_feature pitch = {
    .name = "pitch",
    .allocate_pitched = allocate_pitched,
};
BFC_REGISTER_FEATURE(pitch);

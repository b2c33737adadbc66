// Copies of rows and layers, between memory and arrays, in the driver's several forms: each is
// brought into that of CUDA_MEMCPY3D.
#include "sim/calls/memory/copy3d.h"

#include "sim/border/border.h"
#include "sim/calls/memory/array.h"
#include "sim/calls/memory/copy.h"
#include "sim/calls/memory/place.h"
#include "sim/order/wait.h"

// One side of a copy. `pitch` and `height` 0 mean packed.
struct side {
    CUmemorytype kind;
    uintptr_t address;
    CUarray array;
    size_t pitch, height;
    size_t x, y, z; // bytes, rows, layers
};

static bool place_of(const struct side *side, const struct sim_extent *extent,
                     struct sim_place *place) {
    if (side->kind == CU_MEMORYTYPE_ARRAY) {
        if (!sim_array_place(side->array, place)) {
            return false;
        }
    } else {
        place->start = side->address;
        place->pitch = side->pitch != 0 ? side->pitch : extent->width;
        place->slice = place->pitch * (side->height != 0 ? side->height : extent->height);
    }
    place->start += side->z * place->slice + side->y * place->pitch + side->x;
    return extent->width <= place->pitch || extent->height <= 1;
}

static uintptr_t address_of(CUmemorytype kind, const void *host, CUdeviceptr device) {
    return kind == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
}

static struct side from_of(const CUDA_MEMCPY3D *p) {
    return (struct side){.kind = p->srcMemoryType,
                         .address = address_of(p->srcMemoryType, p->srcHost, p->srcDevice),
                         .array = p->srcArray,
                         .pitch = p->srcPitch,
                         .height = p->srcHeight,
                         .x = p->srcXInBytes,
                         .y = p->srcY,
                         .z = p->srcZ};
}

static struct side to_of(const CUDA_MEMCPY3D *p) {
    return (struct side){.kind = p->dstMemoryType,
                         .address = address_of(p->dstMemoryType, p->dstHost, p->dstDevice),
                         .array = p->dstArray,
                         .pitch = p->dstPitch,
                         .height = p->dstHeight,
                         .x = p->dstXInBytes,
                         .y = p->dstY,
                         .z = p->dstZ};
}

struct resolved {
    struct sim_place to, from;
    struct sim_extent extent;
};

static bool resolve(const CUDA_MEMCPY3D *p, struct resolved *out) {
    if (p == NULL || p->srcLOD != 0 || p->dstLOD != 0) {
        return false;
    }
    struct side to = to_of(p), from = from_of(p);
    out->extent = (struct sim_extent){p->WidthInBytes, p->Height, p->Depth};
    return place_of(&to, &out->extent, &out->to) && place_of(&from, &out->extent, &out->from);
}

static CUresult copy(const CUDA_MEMCPY3D *p, CUstream stream, bool per_thread, enum sim_wait wait) {
    struct resolved r;
    return resolve(p, &r) ? sim_copy_issue(&r.to, &r.from, &r.extent, stream, per_thread, wait)
                          : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_copy_new(const CUDA_MEMCPY3D *p, struct sim_work **out) {
    struct resolved r;
    if (!resolve(p, &r)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sim_copy_work(&r.to, &r.from, &r.extent);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// ---- the API: 3D ----

SIM_PAIR(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, SIM_CURRENT, (const CUDA_MEMCPY3D *p),
         copy(p, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, SIM_CURRENT,
         (const CUDA_MEMCPY3D *p, CUstream stream), copy(p, stream, per_thread, SIM_LATER))

static CUresult copy_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool per_thread,
                          enum sim_wait wait) {
    if (p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_MEMCPY3D plain = {
        .srcXInBytes = p->srcXInBytes,
        .srcY = p->srcY,
        .srcZ = p->srcZ,
        .srcLOD = p->srcLOD,
        .srcMemoryType = p->srcMemoryType,
        .srcHost = p->srcHost,
        .srcDevice = p->srcDevice,
        .srcArray = p->srcArray,
        .srcPitch = p->srcPitch,
        .srcHeight = p->srcHeight,
        .dstXInBytes = p->dstXInBytes,
        .dstY = p->dstY,
        .dstZ = p->dstZ,
        .dstLOD = p->dstLOD,
        .dstMemoryType = p->dstMemoryType,
        .dstHost = p->dstHost,
        .dstDevice = p->dstDevice,
        .dstArray = p->dstArray,
        .dstPitch = p->dstPitch,
        .dstHeight = p->dstHeight,
        .WidthInBytes = p->WidthInBytes,
        .Height = p->Height,
        .Depth = p->Depth,
    };
    return copy(&plain, stream, per_thread, wait);
}

SIM_PAIR(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, SIM_CURRENT, (const CUDA_MEMCPY3D_PEER *p),
         copy_peer(p, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz, SIM_CURRENT,
         (const CUDA_MEMCPY3D_PEER *p, CUstream stream),
         copy_peer(p, stream, per_thread, SIM_LATER))

// ---- the API: 2D ----

static CUresult copy_rows(const CUDA_MEMCPY2D *p, CUstream stream, bool per_thread,
                          enum sim_wait wait) {
    if (p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_MEMCPY3D one_layer = {
        .srcXInBytes = p->srcXInBytes,
        .srcY = p->srcY,
        .srcMemoryType = p->srcMemoryType,
        .srcHost = p->srcHost,
        .srcDevice = p->srcDevice,
        .srcArray = p->srcArray,
        .srcPitch = p->srcPitch,
        .dstXInBytes = p->dstXInBytes,
        .dstY = p->dstY,
        .dstMemoryType = p->dstMemoryType,
        .dstHost = p->dstHost,
        .dstDevice = p->dstDevice,
        .dstArray = p->dstArray,
        .dstPitch = p->dstPitch,
        .WidthInBytes = p->WidthInBytes,
        .Height = p->Height,
        .Depth = 1,
    };
    return copy(&one_layer, stream, per_thread, wait);
}

SIM_PAIR(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, SIM_CURRENT, (const CUDA_MEMCPY2D *p),
         copy_rows(p, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, SIM_CURRENT, (const CUDA_MEMCPY2D *p),
         copy_rows(p, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, SIM_CURRENT,
         (const CUDA_MEMCPY2D *p, CUstream stream), copy_rows(p, stream, per_thread, SIM_LATER))

// ---- the API: a run of bytes of an array ----

static struct side memory(uintptr_t address) {
    return (struct side){.kind = CU_MEMORYTYPE_UNIFIED, .address = address};
}

static struct side inside(CUarray array, size_t offset) {
    return (struct side){.kind = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset};
}

static CUresult copy_run(struct side to, struct side from, size_t bytes, CUstream stream,
                         bool per_thread, enum sim_wait wait) {
    struct sim_extent extent = {bytes, 1, 1};
    struct sim_place to_place, from_place;
    if (!place_of(&to, &extent, &to_place) || !place_of(&from, &extent, &from_place)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_copy_issue(&to_place, &from_place, &extent, stream, per_thread, wait);
}

SIM_PAIR(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds, SIM_CURRENT,
         (void *to, CUarray from, size_t offset, size_t bytes),
         copy_run(memory((uintptr_t)to), inside(from, offset), bytes, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds, SIM_CURRENT,
         (CUarray to, size_t offset, const void *from, size_t bytes),
         copy_run(inside(to, offset), memory((uintptr_t)from), bytes, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds, SIM_CURRENT,
         (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
         copy_run(memory(to), inside(from, offset), bytes, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds, SIM_CURRENT,
         (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
         copy_run(inside(to, offset), memory(from), bytes, NULL, per_thread, SIM_WAIT))
SIM_PAIR(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds, SIM_CURRENT,
         (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
         copy_run(inside(to, to_offset), inside(from, from_offset), bytes, NULL, per_thread,
                  SIM_WAIT))
SIM_PAIR(cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz, SIM_CURRENT,
         (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream),
         copy_run(memory((uintptr_t)to), inside(from, offset), bytes, stream, per_thread,
                  SIM_LATER))
SIM_PAIR(cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz, SIM_CURRENT,
         (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),
         copy_run(inside(to, offset), memory((uintptr_t)from), bytes, stream, per_thread,
                  SIM_LATER))

// Texture objects of the runtime API.
#include "sim/runtime/runtime.h"

#include <stdint.h>
#include <string.h>

static bool resource_of(const struct cudaResourceDesc *from, CUDA_RESOURCE_DESC *to) {
    *to = (CUDA_RESOURCE_DESC){.flags = from->flags};
    switch ((int)from->resType) {
    case cudaResourceTypeArray:
        to->resType = CU_RESOURCE_TYPE_ARRAY;
        to->res.array.hArray = (CUarray)(void *)from->res.array.array;
        return true;
    case cudaResourceTypeLinear:
        to->resType = CU_RESOURCE_TYPE_LINEAR;
        to->res.linear.devPtr = (CUdeviceptr)(uintptr_t)from->res.linear.devPtr;
        to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        return rt_format(&from->res.linear.desc, &to->res.linear.format,
                         &to->res.linear.numChannels);
    case cudaResourceTypePitch2D:
        to->resType = CU_RESOURCE_TYPE_PITCH2D;
        to->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)from->res.pitch2D.devPtr;
        to->res.pitch2D.width = from->res.pitch2D.width;
        to->res.pitch2D.height = from->res.pitch2D.height;
        to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
        return rt_format(&from->res.pitch2D.desc, &to->res.pitch2D.format,
                         &to->res.pitch2D.numChannels);
    default:
        return false; // mipmapped arrays are not modelled
    }
}

static unsigned flags_of(const struct cudaTextureDesc *texture) {
    unsigned flags = 0;
    flags |= texture->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0;
    flags |= texture->normalizedCoords != 0 ? CU_TRSF_NORMALIZED_COORDINATES : 0;
    flags |= texture->sRGB != 0 ? CU_TRSF_SRGB : 0;
    flags |= texture->seamlessCubemap != 0 ? CU_TRSF_SEAMLESS_CUBEMAP : 0;
    flags |=
        texture->disableTrilinearOptimization != 0 ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0;
    return flags;
}

// The two interfaces give modes and filters the same numbers.
static CUDA_TEXTURE_DESC texture_of(const struct cudaTextureDesc *from) {
    CUDA_TEXTURE_DESC to = {.filterMode = (CUfilter_mode)from->filterMode,
                            .flags = flags_of(from),
                            .maxAnisotropy = from->maxAnisotropy,
                            .mipmapFilterMode = (CUfilter_mode)from->mipmapFilterMode,
                            .mipmapLevelBias = from->mipmapLevelBias,
                            .minMipmapLevelClamp = from->minMipmapLevelClamp,
                            .maxMipmapLevelClamp = from->maxMipmapLevelClamp};
    for (int i = 0; i < 3; i++) {
        to.addressMode[i] = (CUaddress_mode)from->addressMode[i];
    }
    memcpy(to.borderColor, from->borderColor, sizeof to.borderColor);
    return to;
}

static cudaError_t create(cudaTextureObject_t *out, const struct cudaResourceDesc *resource,
                          const struct cudaTextureDesc *texture,
                          const struct cudaResourceViewDesc *view) {
    CUDA_RESOURCE_DESC what;
    if (resource == NULL || texture == NULL || !resource_of(resource, &what)) {
        return cudaErrorInvalidValue;
    }
    CUDA_TEXTURE_DESC how = texture_of(texture);
    CUDA_RESOURCE_VIEW_DESC as = {0};
    if (view != NULL) {
        as = (CUDA_RESOURCE_VIEW_DESC){.format = (CUresourceViewFormat)view->format,
                                       .width = view->width,
                                       .height = view->height,
                                       .depth = view->depth,
                                       .firstMipmapLevel = view->firstMipmapLevel,
                                       .lastMipmapLevel = view->lastMipmapLevel,
                                       .firstLayer = view->firstLayer,
                                       .lastLayer = view->lastLayer};
    }
    return rt_code(rt_driver.cuTexObjectCreate(out, &what, &how, view != NULL ? &as : NULL));
}

RT_CALL(cudaCreateTextureObject,
        (cudaTextureObject_t * out, const struct cudaResourceDesc *resource,
         const struct cudaTextureDesc *texture, const struct cudaResourceViewDesc *view),
        create(out, resource, texture, view))
RT_CALL(cudaDestroyTextureObject, (cudaTextureObject_t object),
        rt_code(rt_driver.cuTexObjectDestroy(object)))

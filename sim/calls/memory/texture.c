// Texture objects: what they describe is checked and kept, and no kernel here reads through them. A
// record ends with its context's life. Guarded by the lock.
#include "sim/border/border.h"
#include "sim/calls/memory/array.h"
#include "sim/calls/memory/place.h"
#include "sim/device/context.h"
#include "sim/device/contexts.h"
#include "sim/device/thread.h"
#include "sim/memory/allocate.h"
#include "sim/memory/ranges.h"

#include <stdlib.h>

enum { ALIGNMENT = 512, PITCH_ALIGNMENT = 32 }; // as the device's attributes say

struct texture {
    struct texture *next;
    CUtexObject handle;
    unsigned long long life; // of its context
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
};

static struct texture *textures;

static bool is_memory(CUdeviceptr start) {
    return sim_allocation_at(start) != NULL || sim_host_at(start) != NULL;
}

// Mipmapped arrays are not modelled.
static bool resource_valid(const CUDA_RESOURCE_DESC *resource) {
    struct sim_place place;
    switch ((int)resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return sim_array_place(resource->res.array.hArray, &place);
    case CU_RESOURCE_TYPE_LINEAR:
        return resource->res.linear.devPtr % ALIGNMENT == 0 &&
               resource->res.linear.sizeInBytes > 0 && is_memory(resource->res.linear.devPtr);
    case CU_RESOURCE_TYPE_PITCH2D:
        return resource->res.pitch2D.devPtr % ALIGNMENT == 0 &&
               resource->res.pitch2D.pitchInBytes % PITCH_ALIGNMENT == 0 &&
               resource->res.pitch2D.width > 0 && resource->res.pitch2D.height > 0 &&
               is_memory(resource->res.pitch2D.devPtr);
    default:
        return false;
    }
}

static bool of_an_array(const CUDA_RESOURCE_DESC *resource) {
    return resource->resType == CU_RESOURCE_TYPE_ARRAY ||
           resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
}

static CUresult create(CUtexObject *out, const CUDA_RESOURCE_DESC *resource,
                       const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view) {
    static CUtexObject last;
    if (out == NULL || resource == NULL || texture == NULL || resource->flags != 0 ||
        !resource_valid(resource) || (view != NULL && !of_an_array(resource))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct texture *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->handle = *out = ++last;
    made->life = sim_current()->id;
    made->resource = *resource;
    made->texture = *texture;
    made->has_view = view != NULL;
    if (made->has_view) {
        made->view = *view;
    }
    made->next = textures;
    textures = made;
    return CUDA_SUCCESS;
}

static struct texture **find(CUtexObject handle) {
    struct texture **link = &textures;
    while (*link != NULL && (*link)->handle != handle) {
        link = &(*link)->next;
    }
    return link;
}

static const struct texture *living(CUtexObject handle) {
    const struct texture *texture = *find(handle);
    return texture != NULL && sim_context_of_life(texture->life) != NULL ? texture : NULL;
}

static CUresult destroy(CUtexObject handle) {
    struct texture **link = find(handle), *texture = *link;
    if (living(handle) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *link = texture->next;
    free(texture);
    return CUDA_SUCCESS;
}

SIM_CALL(cuTexObjectCreate, SIM_CURRENT,
         (CUtexObject * out, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
          const CUDA_RESOURCE_VIEW_DESC *view),
         create(out, resource, texture, view))
SIM_CALL(cuTexObjectDestroy, SIM_CURRENT, (CUtexObject handle), destroy(handle))

static CUresult resource_of(CUDA_RESOURCE_DESC *out, const struct texture *texture) {
    if (out == NULL || texture == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = texture->resource;
    return CUDA_SUCCESS;
}

static CUresult texture_of(CUDA_TEXTURE_DESC *out, const struct texture *texture) {
    if (out == NULL || texture == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = texture->texture;
    return CUDA_SUCCESS;
}

static CUresult view_of(CUDA_RESOURCE_VIEW_DESC *out, const struct texture *texture) {
    if (out == NULL || texture == NULL || !texture->has_view) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = texture->view;
    return CUDA_SUCCESS;
}

SIM_CALL(cuTexObjectGetResourceDesc, SIM_CURRENT, (CUDA_RESOURCE_DESC * out, CUtexObject handle),
         resource_of(out, living(handle)))
SIM_CALL(cuTexObjectGetTextureDesc, SIM_CURRENT, (CUDA_TEXTURE_DESC * out, CUtexObject handle),
         texture_of(out, living(handle)))
SIM_CALL(cuTexObjectGetResourceViewDesc, SIM_CURRENT,
         (CUDA_RESOURCE_VIEW_DESC * out, CUtexObject handle), view_of(out, living(handle)))

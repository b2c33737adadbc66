// Arrays: device memory that only copies can reach here. Laid out row by row, with rows aligned to
// 32 bytes; a real device's layout is not told.
#include "sim/calls/memory/array.h"

#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/calls/memory/place.h"
#include "sim/device/context.h"
#include "sim/device/thread.h"
#include "sim/memory/allocate.h"
#include "sim/order/wait.h"

#include <stdlib.h>

struct CUarray_st {
    struct CUarray_st *next; // in its context's list
    struct CUctx_st *context;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUdeviceptr memory;
    struct sim_place place;
};

static size_t format_bytes(CUarray_format format) {
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

bool sim_array_place(CUarray array, struct sim_place *place) {
    if (!sim_handle_is(array, SIM_ARRAY)) {
        return false;
    }
    *place = array->place;
    return true;
}

static size_t at_least_one(size_t number) {
    return number == 0 ? 1 : number;
}

static bool shape_valid(const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    bool channels = shape->NumChannels == 1 || shape->NumChannels == 2 || shape->NumChannels == 4;
    return shape->Width > 0 && channels && format_bytes(shape->Format) != 0 &&
           (shape->Depth == 0 || shape->Height > 0 || (shape->Flags & CUDA_ARRAY3D_LAYERED) != 0);
}

static bool lay_out(struct CUarray_st *array, size_t *bytes) {
    const CUDA_ARRAY3D_DESCRIPTOR *shape = &array->shape;
    size_t element = format_bytes(shape->Format) * shape->NumChannels;
    array->place.pitch = (shape->Width * element + 31) & ~(size_t)31;
    bool overflow = shape->Width > SIZE_MAX / 32 / element;
    overflow |= __builtin_mul_overflow(array->place.pitch, at_least_one(shape->Height),
                                       &array->place.slice);
    overflow |= __builtin_mul_overflow(array->place.slice, at_least_one(shape->Depth), bytes);
    return !overflow;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    struct sim_allocation *memory = NULL;
    size_t bytes = 0;
    if (out == NULL || shape == NULL || !shape_valid(shape)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUarray_st *array = calloc(1, sizeof *array);
    if (array == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    array->context = sim_current();
    array->shape = *shape;
    CUresult result = lay_out(array, &bytes)
                          ? sim_allocate(array->context, bytes, SIM_ARRAY_MEMORY, &memory)
                          : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS || !sim_handle_add(array, SIM_ARRAY)) {
        free(array);
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    array->memory = memory->start;
    array->place.start = memory->start;
    array->next = array->context->arrays;
    array->context->arrays = array;
    *out = array;
    return CUDA_SUCCESS;
}

static CUresult create_2d(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *shape) {
    if (shape == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_ARRAY3D_DESCRIPTOR full = {.Width = shape->Width,
                                    .Height = shape->Height,
                                    .Format = shape->Format,
                                    .NumChannels = shape->NumChannels};
    return create(out, &full);
}

SIM_CALL(cuArrayCreate_v2, SIM_CURRENT | SIM_UNSAFE,
         (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *shape), create_2d(array, shape))
SIM_CALL(cuArray3DCreate_v2, SIM_CURRENT | SIM_UNSAFE,
         (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *shape), create(array, shape))

static void end(struct CUarray_st *array) {
    sim_handle_remove(array);
    sim_allocation_end(sim_allocation_at(array->memory));
    free(array);
}

void sim_context_arrays_end(struct CUctx_st *context) {
    while (context->arrays != NULL) {
        struct CUarray_st *array = context->arrays;
        context->arrays = array->next;
        end(array);
    }
}

static CUresult destroy(CUarray array) {
    if (!sim_handle_is(array, SIM_ARRAY)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = sim_context_finish(array->context);
    if (!sim_handle_is(array, SIM_ARRAY)) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    struct CUarray_st **link = &array->context->arrays;
    while (*link != array) {
        link = &(*link)->next;
    }
    *link = array->next;
    end(array);
    return result;
}

SIM_CALL(cuArrayDestroy, SIM_CURRENT | SIM_UNSAFE, (CUarray array), destroy(array))

static CUresult shape_of(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray array) {
    if (out == NULL || !sim_handle_is(array, SIM_ARRAY)) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    *out = array->shape;
    return CUDA_SUCCESS;
}

static CUresult shape_2d_of(CUDA_ARRAY_DESCRIPTOR *out, CUarray array) {
    CUDA_ARRAY3D_DESCRIPTOR full;
    CUresult result = out == NULL ? CUDA_ERROR_INVALID_VALUE : shape_of(&full, array);
    if (result == CUDA_SUCCESS) {
        *out = (CUDA_ARRAY_DESCRIPTOR){.Width = full.Width,
                                       .Height = full.Height,
                                       .Format = full.Format,
                                       .NumChannels = full.NumChannels};
    }
    return result;
}

SIM_CALL(cuArray3DGetDescriptor_v2, SIM_CURRENT, (CUDA_ARRAY3D_DESCRIPTOR * out, CUarray array),
         shape_of(out, array))
SIM_CALL(cuArrayGetDescriptor_v2, SIM_CURRENT, (CUDA_ARRAY_DESCRIPTOR * out, CUarray array),
         shape_2d_of(out, array))

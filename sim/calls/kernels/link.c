// cuLink…: PTX texts become one image, their texts one after another. Binary images are refused, or
// with SIM_KERNELS=skip make one that is not read. Guarded by the lock.
#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/calls/kernels/image_file.h"
#include "sim/calls/kernels/ptx.h"

#include <stdlib.h>
#include <string.h>

struct CUlinkState_st {
    char *text; // of all that was added; NULL: nothing
    size_t size;
    bool opaque; // one of them was not read
};

// Begins as an image for a real device does.
static const char unread_image[64] = "\177ELF";

// Nothing is logged: what there is room for holds an empty text, and its size is 0.
static void empty_logs(unsigned count, const CUjit_option *options, void **values) {
    for (unsigned i = 0; i < count; i++) {
        bool log = options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER;
        if (log && values[i] != NULL) {
            *(char *)values[i] = '\0';
        }
        if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
            options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            values[i] = NULL;
        }
    }
}

static CUresult create(unsigned count, const CUjit_option *options, void **values,
                       CUlinkState *out) {
    if (count > 0 && (options == NULL || values == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    struct CUlinkState_st *state = calloc(1, sizeof *state);
    if (out == NULL || state == NULL || !sim_handle_add(state, SIM_LINK)) {
        free(state);
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    empty_logs(count, options, values);
    *out = state;
    return CUDA_SUCCESS;
}

static CUresult append(struct CUlinkState_st *state, const char *text) {
    size_t length = strlen(text);
    char *grown = realloc(state->text, state->size + length + 2);
    if (grown == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(grown + state->size, text, length);
    memcpy(grown + state->size + length, "\n", 2);
    state->text = grown;
    state->size += length + 1;
    return CUDA_SUCCESS;
}

static CUresult add(CUlinkState state, const void *data) {
    struct sim_image image = {0};
    if (!sim_handle_is(state, SIM_LINK)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = sim_image_load(data, &image);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_image_drop(&image);
    state->opaque = state->opaque || image.opaque;
    return image.opaque ? CUDA_SUCCESS : append(state, data);
}

static CUresult add_file(CUlinkState state, const char *path) {
    char *text = sim_image_file(path);
    CUresult result = text == NULL ? CUDA_ERROR_FILE_NOT_FOUND : add(state, text);
    free(text);
    return result;
}

static CUresult complete(CUlinkState state, void **image, size_t *size) {
    if (!sim_handle_is(state, SIM_LINK) || image == NULL) {
        return image == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    if (state->text == NULL && !state->opaque) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *image = state->opaque ? (void *)(uintptr_t)unread_image : state->text;
    if (size != NULL) {
        *size = state->opaque ? sizeof unread_image : state->size + 1;
    }
    return CUDA_SUCCESS;
}

static CUresult destroy(CUlinkState state) {
    if (!sim_handle_is(state, SIM_LINK)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_handle_remove(state);
    free(state->text);
    free(state);
    return CUDA_SUCCESS;
}

// The older forms differ in no argument that matters here.
#define LINK_CALLS(version)                                                                        \
    SIM_CALL(cuLinkCreate##version, SIM_CURRENT,                                                   \
             (unsigned count, CUjit_option *options, void **values, CUlinkState *state),           \
             create(count, options, values, state))                                                \
    SIM_CALL(cuLinkAddData##version, SIM_CURRENT,                                                  \
             (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,   \
              unsigned count, CUjit_option *options, void **values),                               \
             ((void)type, (void)size, (void)name, (void)count, (void)options, (void)values,        \
              add(state, data)))                                                                   \
    SIM_CALL(cuLinkAddFile##version, SIM_CURRENT,                                                  \
             (CUlinkState state, CUjitInputType type, const char *path, unsigned count,            \
              CUjit_option *options, void **values),                                               \
             ((void)type, (void)count, (void)options, (void)values, add_file(state, path)))
LINK_CALLS()
LINK_CALLS(_v2)
SIM_CALL(cuLinkComplete, SIM_CURRENT, (CUlinkState state, void **image, size_t *size),
         complete(state, image, size))
SIM_CALL(cuLinkDestroy, SIM_READY, (CUlinkState state), destroy(state))

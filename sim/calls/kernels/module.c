// Modules and libraries. A module belongs to a context and ends with it; a library's kernels serve
// every context.
#include "sim/calls/kernels/module.h"

#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/calls/kernels/image_file.h"
#include "sim/calls/kernels/ptx.h"
#include "sim/device/context.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/device/thread.h"
#include "sim/memory/allocate.h"
#include "sim/memory/reach.h"
#include "sim/order/wait.h"

#include <stdlib.h>
#include <string.h>

struct CUmod_st {
    struct CUmod_st *next; // in its context's list
    struct CUctx_st *context;
    struct sim_image image;
};

struct CUlib_st {
    struct sim_image image;
};

static CUresult load(CUmodule *out, const void *bytes) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUmod_st *module = calloc(1, sizeof *module);
    if (module == NULL || !sim_handle_add(module, SIM_MODULE)) {
        free(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->image.module = module;
    CUresult result = sim_image_load(bytes, &module->image);
    if (result != CUDA_SUCCESS) {
        sim_handle_remove(module);
        free(module);
        return result;
    }
    module->context = sim_current();
    module->next = module->context->modules;
    module->context->modules = module;
    *out = module;
    return CUDA_SUCCESS;
}

struct CUctx_st *sim_module_context(const struct CUmod_st *module) {
    return module->context;
}

static CUresult load_file(CUmodule *out, const char *path) {
    char *text = sim_image_file(path);
    CUresult result = text == NULL ? CUDA_ERROR_FILE_NOT_FOUND : load(out, text);
    free(text);
    return result;
}

SIM_CALL(cuModuleLoad, SIM_CURRENT | SIM_UNSAFE, (CUmodule * module, const char *path),
         load_file(module, path))
SIM_CALL(cuModuleLoadData, SIM_CURRENT | SIM_UNSAFE, (CUmodule * module, const void *image),
         load(module, image))
SIM_CALL(cuModuleLoadDataEx, SIM_CURRENT | SIM_UNSAFE,
         (CUmodule * module, const void *image, unsigned count, CUjit_option *options,
          void **values),
         count > 0 && (options == NULL || values == NULL) ? CUDA_ERROR_INVALID_VALUE
                                                          : load(module, image))
SIM_CALL(cuModuleLoadFatBinary, SIM_CURRENT | SIM_UNSAFE, (CUmodule * module, const void *image),
         load(module, image))

// That of contexts which have ended has gone with them.
static void free_variables_of(struct sim_image *image) {
    for (struct sim_variable *v = image->variables; v != NULL; v = v->next) {
        if (v->address != 0 && sim_context_of_life(v->life) != NULL) {
            sim_allocation_end(sim_allocation_at(v->address));
        }
    }
}

static void end(struct CUmod_st *module, bool free_variables) {
    if (free_variables) {
        free_variables_of(&module->image);
    }
    sim_image_drop(&module->image);
    sim_handle_remove(module);
    free(module);
}

void sim_context_modules_end(struct CUctx_st *context) {
    while (context->modules != NULL) {
        struct CUmod_st *module = context->modules;
        context->modules = module->next;
        end(module, false); // the context's memory goes with it
    }
}

// Its functions may still be queued, so it waits.
static CUresult unload(CUmodule handle) {
    if (!sim_handle_is(handle, SIM_MODULE)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_context_finish(handle->context);
    if (!sim_handle_is(handle, SIM_MODULE)) {
        return CUDA_SUCCESS; // its context ended meanwhile
    }
    struct CUmod_st **link = &handle->context->modules;
    while (*link != handle) {
        link = &(*link)->next;
    }
    *link = handle->next;
    end(handle, true);
    return CUDA_SUCCESS;
}

SIM_CALL(cuModuleUnload, SIM_CURRENT | SIM_UNSAFE, (CUmodule module), unload(module))

static CUresult function_of(CUfunction *out, CUmodule module, const char *name) {
    if (!sim_handle_is(module, SIM_MODULE)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (out == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sim_image_function(&module->image, name);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SIM_CALL(cuModuleGetFunction, SIM_CURRENT, (CUfunction * out, CUmodule module, const char *name),
         function_of(out, module, name))

static CUresult place(struct sim_variable *v, struct CUctx_st *context) {
    struct sim_allocation *memory = NULL;
    CUresult result = sim_allocate(context, v->size, SIM_VARIABLE, &memory);
    if (result == CUDA_SUCCESS) {
        memset(sim_reach(memory->start, memory->taken), 0, memory->size);
        v->address = memory->start;
        v->life = context->id;
    }
    return result;
}

static CUresult tell(const struct sim_variable *v, CUdeviceptr *address, size_t *size) {
    if (address != NULL) {
        *address = v->address;
    }
    if (size != NULL) {
        *size = v->size;
    }
    return CUDA_SUCCESS;
}

static bool lives_in(const struct sim_variable *v, const struct CUctx_st *context) {
    return v->address != 0 && v->life == context->id;
}

// A variable has a place in each context in which it was asked for.
static CUresult variable_in(struct CUctx_st *context, struct sim_image *image, const char *name,
                            CUdeviceptr *address, size_t *size) {
    struct sim_variable *first = name == NULL ? NULL : sim_image_variable(image, name, NULL);
    struct sim_variable *v = first;
    if (first == NULL) {
        return name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
    }
    while (v != NULL && v->address != 0 && !lives_in(v, context)) {
        v = sim_image_variable(image, name, v);
    }
    if (v == NULL && (v = sim_image_add_variable(image, name, first->size)) == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = v->address == 0 ? place(v, context) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? tell(v, address, size) : result;
}

static CUresult variable_of(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
    return sim_handle_is(module, SIM_MODULE)
               ? variable_in(module->context, &module->image, name, address, size)
               : CUDA_ERROR_INVALID_HANDLE;
}

SIM_CALL(cuModuleGetGlobal_v2, SIM_CURRENT,
         (CUdeviceptr * address, size_t *size, CUmodule module, const char *name),
         variable_of(address, size, module, name))

static CUresult loading_mode(CUmoduleLoadingMode *mode) {
    if (mode == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

SIM_CALL(cuModuleGetLoadingMode, SIM_NOTHING, (CUmoduleLoadingMode * mode), loading_mode(mode))

// ---- libraries: a kernel is the function itself, of no context ----

static CUresult load_library(CUlibrary *out, const void *bytes) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUlib_st *library = calloc(1, sizeof *library);
    if (library == NULL || !sim_handle_add(library, SIM_LIBRARY)) {
        free(library);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = sim_image_load(bytes, &library->image);
    if (result != CUDA_SUCCESS) {
        sim_handle_remove(library);
        free(library);
        return result;
    }
    *out = library;
    return CUDA_SUCCESS;
}

SIM_CALL(cuLibraryLoadData, SIM_READY | SIM_UNSAFE,
         (CUlibrary * library, const void *image, CUjit_option *options, void **values,
          unsigned count, CUlibraryOption *library_options, void **library_values,
          unsigned library_count),
         (count > 0 && (options == NULL || values == NULL)) ||
                 (library_count > 0 && (library_options == NULL || library_values == NULL))
             ? CUDA_ERROR_INVALID_VALUE
             : load_library(library, image))

static CUresult load_library_file(CUlibrary *out, const char *path) {
    char *text = sim_image_file(path);
    CUresult result = text == NULL ? CUDA_ERROR_FILE_NOT_FOUND : load_library(out, text);
    free(text);
    return result;
}

SIM_CALL(cuLibraryLoadFromFile, SIM_READY | SIM_UNSAFE,
         (CUlibrary * library, const char *path, CUjit_option *options, void **values,
          unsigned count, CUlibraryOption *library_options, void **library_values,
          unsigned library_count),
         (count > 0 && (options == NULL || values == NULL)) ||
                 (library_count > 0 && (library_options == NULL || library_values == NULL))
             ? CUDA_ERROR_INVALID_VALUE
             : load_library_file(library, path))

static CUresult unload_library(CUlibrary handle) {
    if (!sim_handle_is(handle, SIM_LIBRARY)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_devices_finish();
    free_variables_of(&handle->image);
    sim_image_drop(&handle->image);
    sim_handle_remove(handle);
    free(handle);
    return CUDA_SUCCESS;
}

SIM_CALL(cuLibraryUnload, SIM_READY | SIM_UNSAFE, (CUlibrary library), unload_library(library))

static CUresult kernel_of(CUkernel *out, CUlibrary library, const char *name) {
    if (!sim_handle_is(library, SIM_LIBRARY)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (out == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (CUkernel)(void *)sim_image_function(&library->image, name);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SIM_CALL(cuLibraryGetKernel, SIM_READY, (CUkernel * out, CUlibrary library, const char *name),
         kernel_of(out, library, name))

static CUresult variable_of_library(CUdeviceptr *address, size_t *size, CUlibrary library,
                                    const char *name) {
    return sim_handle_is(library, SIM_LIBRARY)
               ? variable_in(sim_current(), &library->image, name, address, size)
               : CUDA_ERROR_INVALID_HANDLE;
}

SIM_CALL(cuLibraryGetGlobal, SIM_CURRENT,
         (CUdeviceptr * address, size_t *size, CUlibrary library, const char *name),
         variable_of_library(address, size, library, name))

static CUresult function_of_kernel(CUfunction *out, CUkernel kernel) {
    if (out == NULL || !sim_handle_is(kernel, SIM_FUNCTION)) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    *out = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

SIM_CALL(cuKernelGetFunction, SIM_CURRENT, (CUfunction * out, CUkernel kernel),
         function_of_kernel(out, kernel))

// ---- what a function tells ----

static CUresult module_of(CUmodule *out, CUfunction function) {
    if (out == NULL || !sim_handle_is(function, SIM_FUNCTION)) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    *out = function->module;
    return CUDA_SUCCESS;
}

static CUresult name_of(const char **out, const void *function) {
    if (out == NULL || !sim_handle_is(function, SIM_FUNCTION)) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    *out = ((const struct CUfunc_st *)function)->name;
    return CUDA_SUCCESS;
}

static CUresult attribute_of(int *out, CUfunction_attribute which, CUfunction function) {
    if (out == NULL || which >= CU_FUNC_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_handle_is(function, SIM_FUNCTION)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
           : which == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 32
           : which == CU_FUNC_ATTRIBUTE_PTX_VERSION         ? 90 // as compiled for the device
           : which == CU_FUNC_ATTRIBUTE_BINARY_VERSION      ? 90
                                                            : 0;
    return CUDA_SUCCESS;
}

SIM_CALL(cuFuncGetModule, SIM_CURRENT, (CUmodule * out, CUfunction function),
         module_of(out, function))
SIM_CALL(cuFuncGetName, SIM_CURRENT, (const char **out, CUfunction function),
         name_of(out, function))
SIM_CALL(cuKernelGetName, SIM_READY, (const char **out, CUkernel kernel), name_of(out, kernel))
SIM_CALL(cuFuncGetAttribute, SIM_CURRENT,
         (int *out, CUfunction_attribute which, CUfunction function),
         attribute_of(out, which, function))
SIM_CALL(cuKernelGetAttribute, SIM_READY,
         (int *out, CUfunction_attribute which, CUkernel kernel, CUdevice device),
         sim_device_of(device) == NULL ? CUDA_ERROR_INVALID_DEVICE
                                       : attribute_of(out, which, (CUfunction)(void *)kernel))

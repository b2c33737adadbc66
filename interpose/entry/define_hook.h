/* How a hook is declared and defined, and how it makes its call again when the device is full. */
#ifndef BFC_INTERPOSE_DEFINE_HOOK_H
#define BFC_INTERPOSE_DEFINE_HOOK_H

#include <cuda.h>

#include "interpose/reuse/give_back.h"

/*
 * A hook is a local function, which programs reach through the tables in hooks.c. It is also
 * exported by the driver's name, with the hidden version that symbols.map explains, only so that
 * dladdr can name it.
 */
#define BFC_HOOK_DECLARED(name, arguments)                                                         \
    __attribute__((visibility("hidden"))) CUresult hook_##name arguments __asm__("hook_" #name)
#define BFC_HOOK(name, arguments)                                                                  \
    CUresult bfc_export_##name arguments                                                           \
        __attribute__((visibility("default"), alias("hook_" #name)));                              \
    __asm__(".symver bfc_export_" #name ", " #name "@BFC_BOUND");                                  \
    BFC_HOOK_DECLARED(name, arguments);                                                            \
    CUresult hook_##name arguments

/*
 * Declares `result` and makes `call`. While the call returns out of memory and the pools can give
 * memory back on the device that `place` means, the call is made again. `driver` must be in scope.
 */
#define BFC_RETRIED_WHEN_FULL(result, place, call)                                                 \
    CUresult result = call;                                                                        \
    while (result == CUDA_ERROR_OUT_OF_MEMORY && bfc_give_back_for_call(driver, place))            \
    result = call

#endif

// Variables of a program's device code, by the address that stands for each on the host: what
// cudaMemcpyToSymbol and its kin are made of.
#include "sim/runtime/runtime.h"

#include <stdint.h>

static void *pointer(CUdeviceptr address) {
    return (void *)(uintptr_t)address;
}

// The part of a variable that a copy is about.
static cudaError_t part(const void *symbol, size_t offset, size_t count, void **out) {
    CUdeviceptr start = 0;
    size_t size = 0;
    cudaError_t result = rt_variable(symbol, &start, &size);
    if (result != cudaSuccess) {
        return result;
    }
    *out = pointer(start + offset);
    return offset > size || count > size - offset ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t copy_to(const void *symbol, const void *from, size_t count, size_t offset,
                           enum cudaMemcpyKind kind, int pt) {
    void *to = NULL;
    cudaError_t result = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost
                             ? cudaErrorInvalidMemcpyDirection
                             : part(symbol, offset, count, &to);
    return result == cudaSuccess ? rt_copy(to, from, count, kind, pt) : result;
}

static cudaError_t copy_to_async(const void *symbol, const void *from, size_t count, size_t offset,
                                 enum cudaMemcpyKind kind, cudaStream_t stream, int pt) {
    void *to = NULL;
    cudaError_t result = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost
                             ? cudaErrorInvalidMemcpyDirection
                             : part(symbol, offset, count, &to);
    return result == cudaSuccess ? rt_copy_async(to, from, count, kind, stream, pt) : result;
}

static cudaError_t copy_from(void *to, const void *symbol, size_t count, size_t offset,
                             enum cudaMemcpyKind kind, int pt) {
    void *from = NULL;
    cudaError_t result = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost
                             ? cudaErrorInvalidMemcpyDirection
                             : part(symbol, offset, count, &from);
    return result == cudaSuccess ? rt_copy(to, from, count, kind, pt) : result;
}

static cudaError_t copy_from_async(void *to, const void *symbol, size_t count, size_t offset,
                                   enum cudaMemcpyKind kind, cudaStream_t stream, int pt) {
    void *from = NULL;
    cudaError_t result = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost
                             ? cudaErrorInvalidMemcpyDirection
                             : part(symbol, offset, count, &from);
    return result == cudaSuccess ? rt_copy_async(to, from, count, kind, stream, pt) : result;
}

RT_PAIR(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds,
        (const void *symbol, const void *from, size_t count, size_t offset,
         enum cudaMemcpyKind kind),
        copy_to(symbol, from, count, offset, kind, pt))
RT_PAIR(cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz,
        (const void *symbol, const void *from, size_t count, size_t offset,
         enum cudaMemcpyKind kind, cudaStream_t stream),
        copy_to_async(symbol, from, count, offset, kind, stream, pt))
RT_PAIR(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds,
        (void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
        copy_from(to, symbol, count, offset, kind, pt))
RT_PAIR(cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz,
        (void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
         cudaStream_t stream),
        copy_from_async(to, symbol, count, offset, kind, stream, pt))

static cudaError_t address_of(void **out, const void *symbol) {
    return out == NULL ? cudaErrorInvalidValue : part(symbol, 0, 0, out);
}

static cudaError_t size_of(size_t *out, const void *symbol) {
    CUdeviceptr start = 0;
    return out == NULL ? cudaErrorInvalidValue : rt_variable(symbol, &start, out);
}

RT_CALL(cudaGetSymbolAddress, (void **out, const void *symbol), address_of(out, symbol))
RT_CALL(cudaGetSymbolSize, (size_t * out, const void *symbol), size_of(out, symbol))

// What hypre 2.32 takes from CUDA 12 and CUDA 13 no longer has; included before each of its files.
#ifndef BFC_TESTS_GPU_HYPRE_CUH
#define BFC_TESTS_GPU_HYPRE_CUH

#include <cuda_runtime.h>

#if CUDART_VERSION >= 13000
#include <thrust/functional.h>

namespace thrust {
template <class Argument, class Result> struct unary_function {
    typedef Argument argument_type;
    typedef Result result_type;
};

template <class One, class Other, class Result> struct binary_function {};

template <class T> struct identity {
    __host__ __device__ const T &operator()(const T &value) const {
        return value;
    }
};

template <class Predicate> struct negated {
    Predicate predicate;
    template <class T> __host__ __device__ bool operator()(const T &value) const {
        Predicate own = predicate; // some can be called only if they are not const
        return !own(value);
    }
};

template <class Predicate> negated<Predicate> not1(const Predicate &predicate) {
    return {predicate};
}
} // namespace thrust

static inline cudaError_t prefetch_as_in_cuda_12(const void *start, size_t bytes, int device,
                                                 cudaStream_t stream) {
    cudaMemLocation to = {};
    to.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    to.id = device;
    return cudaMemPrefetchAsync(start, bytes, to, 0, stream);
}
#define cudaMemPrefetchAsync prefetch_as_in_cuda_12
#endif

// hypre names these also where it is built without cuSPARSE, in a function that nothing calls then.
#define hypre_CSRMatrixSortedJ(matrix) ((matrix)->j)
#define hypre_CSRMatrixSortedData(matrix) ((matrix)->data)

#endif

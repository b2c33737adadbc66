// cuBLAS from a program of nvcc's: products of matrices that are allocated anew each time, while
// the library takes its own workspace. Prints one line of JSON, as the Python clients do.
#include <cublas_v2.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void must(int result, const char *what) {
    if (result != 0) {
        std::fprintf(stderr, "%s: error %d\n", what, result);
        std::exit(1);
    }
}
#define MUST(call) must((int)(call), #call)

static uint64_t digest = 14695981039346656037u;

static void multiply(cublasHandle_t handle, int size) {
    size_t bytes = (size_t)size * size * sizeof(float);
    std::vector<float> host((size_t)size * size);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = (float)(i * 7919 % 1013) / 1013;
    float *a, *b, *c, one = 1, zero = 0;
    MUST(cudaMalloc(&a, bytes));
    MUST(cudaMalloc(&b, bytes));
    MUST(cudaMalloc(&c, bytes));
    MUST(cudaMemcpy(a, host.data(), bytes, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(b, host.data(), bytes, cudaMemcpyHostToDevice));
    MUST(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, size, size, size, &one, a, size, b, size,
                     &zero, c, size));
    MUST(cudaMemcpy(host.data(), c, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ ((const unsigned char *)host.data())[i]) * 1099511628211u;
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaFree(c));
}

int main() {
    cublasHandle_t handle;
    MUST(cublasCreate(&handle));
    multiply(handle, 256);
    auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < 100; round++)
        multiply(handle, 64 + round * 37 % 512);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    MUST(cublasDestroy(handle));
    std::printf("{\"client\": \"cublas\", \"digest\": \"%016llx\", \"seconds\": %.4f}\n",
                (unsigned long long)digest, took.count());
    return 0;
}

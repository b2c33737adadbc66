// cuBLAS from a program of nvcc's: products of matrices that are allocated anew each time, while
// the library takes its own workspace. Prints one line of JSON, as the Python clients do; only
// allocating, copying, multiplying and freeing are timed.
#include <cublas_v2.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "client.cuh"

enum { ROUNDS = 200, SMALLEST = 64, SIZES = 512, LARGEST = SMALLEST + SIZES };

static void multiply(cublasHandle_t handle, int size, const std::vector<float> &input,
                     std::vector<float> &output) {
    size_t bytes = (size_t)size * size * sizeof(float);
    float *a, *b, *c, one = 1, zero = 0;
    MUST(cudaMalloc(&a, bytes));
    MUST(cudaMalloc(&b, bytes));
    MUST(cudaMalloc(&c, bytes));
    MUST(cudaMemcpy(a, input.data(), bytes, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(b, input.data(), bytes, cudaMemcpyHostToDevice));
    MUST(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, size, size, size, &one, a, size, b, size,
                     &zero, c, size));
    output.resize((size_t)size * size);
    MUST(cudaMemcpy(output.data(), c, bytes, cudaMemcpyDeviceToHost));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaFree(c));
}

int main() {
    std::vector<float> input((size_t)LARGEST * LARGEST);
    for (size_t i = 0; i < input.size(); i++)
        input[i] = (float)(i * 7919 % 1013) / 1013;
    std::vector<std::vector<float>> outputs(ROUNDS);
    cublasHandle_t handle;
    MUST(cublasCreate(&handle));
    multiply(handle, 256, input, outputs[0]);
    auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < ROUNDS; round++)
        multiply(handle, SMALLEST + round * 37 % SIZES, input, outputs[round]);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    MUST(cublasDestroy(handle));
    for (const auto &output : outputs)
        digest(output.data(), output.size() * sizeof(float));
    print("cublas", took.count());
    return 0;
}

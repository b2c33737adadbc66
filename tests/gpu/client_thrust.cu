// Thrust from eight threads: arrays of varying length are made, sorted and summed up, each with
// memory of its own, as is what Thrust needs meanwhile. CLIENT_POOL=own: from the driver's pool
// (cudaMallocAsync), which keeps all. One line of JSON, as of the other clients.
#include <cuda_runtime.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "client.cuh"

enum { THREADS = 8, ROUNDS = 60, SMALLEST = 1 << 18, LARGEST = 1 << 22 };

static bool own_pool;

// What Thrust asks for memory.
struct Memory {
    typedef char value_type;
    cudaStream_t stream;

    char *allocate(std::ptrdiff_t bytes) {
        void *block;
        MUST(own_pool ? cudaMallocAsync(&block, (size_t)bytes, stream)
                      : cudaMalloc(&block, (size_t)bytes));
        return (char *)block;
    }
    void deallocate(char *block, size_t) {
        MUST(own_pool ? cudaFreeAsync(block, stream) : cudaFree(block));
    }
};

struct Scattered {
    unsigned round;
    __host__ __device__ unsigned operator()(unsigned i) const {
        return (i + round) * 2654435761u;
    }
};

static unsigned sort_and_sum(Memory &memory, unsigned round, unsigned length) {
    char *block = memory.allocate((std::ptrdiff_t)length * 4);
    thrust::device_ptr<unsigned> values((unsigned *)block);
    auto policy = thrust::cuda::par(memory).on(memory.stream);
    thrust::tabulate(policy, values, values + length, Scattered{round});
    thrust::sort(policy, values, values + length);
    thrust::inclusive_scan(policy, values, values + length, values);
    unsigned last;
    MUST(cudaMemcpyAsync(&last, block + (size_t)(length - 1) * 4, 4, cudaMemcpyDeviceToHost,
                         memory.stream));
    MUST(cudaStreamSynchronize(memory.stream));
    memory.deallocate(block, (size_t)length * 4);
    return last;
}

static void work(unsigned thread, unsigned *sums) {
    Memory memory;
    MUST(cudaStreamCreateWithFlags(&memory.stream, cudaStreamNonBlocking));
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned length = SMALLEST + (thread * ROUNDS + round) * 104729u % (LARGEST - SMALLEST);
        sums[round] = sort_and_sum(memory, round, length);
    }
    MUST(cudaStreamDestroy(memory.stream));
}

static void keep_what_is_freed() {
    cudaMemPool_t pool;
    unsigned long long most = ~0ull;
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most));
}

int main() {
    const char *pool = std::getenv("CLIENT_POOL");
    own_pool = pool && std::strcmp(pool, "own") == 0;
    MUST(cudaSetDevice(0));
    if (own_pool)
        keep_what_is_freed();
    std::vector<unsigned> sums(THREADS * ROUNDS);
    work(0, sums.data()); // the kernels are loaded
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < THREADS; i++)
        threads.emplace_back(work, i, sums.data() + i * ROUNDS);
    for (auto &thread : threads)
        thread.join();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    digest(sums.data(), sums.size() * sizeof sums[0]);
    print("thrust", took.count());
    return 0;
}

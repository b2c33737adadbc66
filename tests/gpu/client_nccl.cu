// NCCL from a program of nvcc's: sums over all devices there are (one is enough), in buffers that are
// allocated anew each time. Prints one line of JSON, as the Python clients do.
#include <nccl.h>
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

int main() {
    int devices = 0;
    MUST(cudaGetDeviceCount(&devices));
    std::vector<ncclComm_t> communicators(devices);
    std::vector<cudaStream_t> streams(devices);
    MUST(ncclCommInitAll(communicators.data(), devices, nullptr));
    for (int device = 0; device < devices; device++) {
        MUST(cudaSetDevice(device));
        MUST(cudaStreamCreate(&streams[device]));
    }
    uint64_t digest = 14695981039346656037u;
    auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < 50; round++) {
        size_t count = 1000 + round * 7919 % 100000;
        std::vector<int> host(count);
        std::vector<int *> buffers(devices);
        for (size_t i = 0; i < count; i++)
            host[i] = (int)(i * 31 + round);
        for (int device = 0; device < devices; device++) {
            MUST(cudaSetDevice(device));
            MUST(cudaMalloc(&buffers[device], count * sizeof(int)));
            MUST(cudaMemcpy(buffers[device], host.data(), count * sizeof(int),
                            cudaMemcpyHostToDevice));
        }
        MUST(ncclGroupStart());
        for (int device = 0; device < devices; device++)
            MUST(ncclAllReduce(buffers[device], buffers[device], count, ncclInt, ncclSum,
                               communicators[device], streams[device]));
        MUST(ncclGroupEnd());
        for (int device = 0; device < devices; device++) {
            MUST(cudaSetDevice(device));
            MUST(cudaStreamSynchronize(streams[device]));
            MUST(cudaMemcpy(host.data(), buffers[device], count * sizeof(int),
                            cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < count; i++)
                digest = (digest ^ (uint64_t)(unsigned)host[i]) * 1099511628211u;
            MUST(cudaFree(buffers[device]));
        }
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    for (int device = 0; device < devices; device++)
        MUST(ncclCommDestroy(communicators[device]));
    std::printf("{\"client\": \"nccl\", \"digest\": \"%016llx\", \"seconds\": %.4f}\n",
                (unsigned long long)digest, took.count());
    return 0;
}

// NCCL from a program of nvcc's: sums over all devices there are (one is enough), in buffers that are
// allocated anew each time. Prints one line of JSON, as the Python clients do; only allocating,
// copying, summing and freeing are timed.
#include <nccl.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "client.cuh"

enum { ROUNDS = 200, SMALLEST = 1000, SIZES = 100000, LARGEST = SMALLEST + SIZES };

struct device {
    ncclComm_t communicator;
    cudaStream_t stream;
    int *buffer;
};

static void sum(std::vector<device> &devices, size_t count, const std::vector<int> &input,
                std::vector<int> &output) {
    size_t bytes = count * sizeof(int);
    for (size_t i = 0; i < devices.size(); i++) {
        MUST(cudaSetDevice((int)i));
        MUST(cudaMalloc(&devices[i].buffer, bytes));
        MUST(cudaMemcpy(devices[i].buffer, input.data(), bytes, cudaMemcpyHostToDevice));
    }
    MUST(ncclGroupStart());
    for (const device &each : devices)
        MUST(ncclAllReduce(each.buffer, each.buffer, count, ncclInt, ncclSum, each.communicator,
                           each.stream));
    MUST(ncclGroupEnd());
    output.resize(count * devices.size());
    for (size_t i = 0; i < devices.size(); i++) {
        MUST(cudaSetDevice((int)i));
        MUST(cudaStreamSynchronize(devices[i].stream));
        MUST(cudaMemcpy(&output[i * count], devices[i].buffer, bytes, cudaMemcpyDeviceToHost));
        MUST(cudaFree(devices[i].buffer));
    }
}

int main() {
    std::vector<int> input(LARGEST);
    for (size_t i = 0; i < input.size(); i++)
        input[i] = (int)(i * 31);
    std::vector<std::vector<int>> outputs(ROUNDS);
    int count = 0;
    MUST(cudaGetDeviceCount(&count));
    std::vector<device> devices(count);
    std::vector<ncclComm_t> communicators(count);
    MUST(ncclCommInitAll(communicators.data(), count, nullptr));
    for (int i = 0; i < count; i++) {
        MUST(cudaSetDevice(i));
        MUST(cudaStreamCreate(&devices[i].stream));
        devices[i].communicator = communicators[i];
    }
    sum(devices, SMALLEST, input, outputs[0]);
    auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < ROUNDS; round++)
        sum(devices, SMALLEST + round * 7919 % SIZES, input, outputs[round]);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    for (const device &each : devices)
        MUST(ncclCommDestroy(each.communicator));
    for (const auto &output : outputs)
        digest(output.data(), output.size() * sizeof(int));
    print("nccl", took.count());
    return 0;
}

// Work of every kind that the driver takes, in one stream, in several, and by several threads:
// built a second time with CUDA_API_PER_THREAD_DEFAULT_STREAM. What it computes is the same each
// time. One line of JSON, as of the other clients. usage: client_submissions KERNELS_PTX
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "client.cuh"

enum { ALONE = 9000, ROUNDS = 60, WORDS = 1 << 16, BYTES = WORDS * 4, THREADS = 4, STREAMS = 3 };

static CUfunction add; // add(words, count, by)

static void launch(unsigned *words, unsigned by, cudaStream_t stream) {
    uint64_t count = WORDS, more = by;
    void *arguments[] = {&words, &count, &more};
    MUST(cuLaunchKernel(add, 8, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
}

static void launch_extended(unsigned *words, unsigned by, cudaStream_t stream) {
    uint64_t count = WORDS, more = by;
    void *arguments[] = {&words, &count, &more};
    CUlaunchConfig how = {};
    how.gridDimX = 8, how.gridDimY = how.gridDimZ = 1;
    how.blockDimX = 64, how.blockDimY = how.blockDimZ = 1;
    how.hStream = stream;
    MUST(cuLaunchKernelEx(&how, add, arguments, nullptr));
}

static unsigned *block(unsigned value, cudaStream_t stream) {
    void *made;
    MUST(cudaMalloc(&made, BYTES));
    MUST(cudaMemsetAsync(made, (int)(value & 0xff), BYTES, stream));
    return (unsigned *)made;
}

static void CUDART_CB nothing(void *) {
}

// Kinds of which a device or a driver may lack some: an error is no failure.
static void unusual(unsigned *words, cudaStream_t stream) {
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)words;
    CUstreamBatchMemOpParams write = {};
    write.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = at;
    write.writeValue.value = 7;
    (void)cuStreamBatchMemOp(stream, 1, &write, 0);
    (void)cuStreamWriteValue32(stream, at, 7, 0);
    (void)cuStreamWaitValue32(stream, at, 7, CU_STREAM_WAIT_VALUE_EQ);
    (void)cudaLaunchHostFunc(stream, nothing, nullptr);
    (void)cudaGetLastError();
}

static void managed(cudaStream_t stream) {
    void *memory;
    if (cudaMallocManaged(&memory, BYTES) != cudaSuccess)
        return;
    (void)cudaMemsetAsync(memory, 1, BYTES, stream);
#if CUDA_VERSION >= 13000
    CUmemLocation where = {};
    where.type = CU_MEM_LOCATION_TYPE_DEVICE;
    (void)cuMemPrefetchAsync((CUdeviceptr)(uintptr_t)memory, BYTES, where, 0, stream);
#else
    (void)cuMemPrefetchAsync((CUdeviceptr)(uintptr_t)memory, BYTES, 0, stream);
#endif
    (void)cudaStreamSynchronize(stream);
    (void)cudaFree(memory);
    (void)cudaGetLastError();
}

static void from_driver_pool(cudaStream_t stream) {
    void *memory;
    if (cudaMallocAsync(&memory, BYTES, stream) == cudaSuccess) {
        (void)cudaMemsetAsync(memory, 1, BYTES, stream);
        (void)cudaFreeAsync(memory, stream);
    }
    (void)cudaGetLastError();
}

// So many frees that the library checks itself.
static void alone(std::vector<unsigned> &output) {
    for (int round = 0; round < ALONE; round++) {
        unsigned *words = block(round, nullptr);
        launch(words, 1, nullptr);
        if (round % 100 == 0) {
            MUST(cudaMemcpy(output.data(), words, BYTES, cudaMemcpyDeviceToHost));
            digest(output.data(), BYTES);
        }
        MUST(cudaFree(words));
    }
}

// Copies and sets of each shape, each followed by a kernel, in one stream.
static void straight(int round, cudaStream_t stream, std::vector<unsigned> &output) {
    unsigned *one = block(round, stream), *other = block(round + 1, stream);
    launch(one, 3, stream);
    MUST(cudaMemcpyAsync(other, one, BYTES / 2, cudaMemcpyDeviceToDevice, stream));
    launch_extended(other, 5, stream);
    MUST(cudaMemcpy2DAsync(one, 512, other, 1024, 256, 64, cudaMemcpyDeviceToDevice, stream));
    MUST(cudaMemset2DAsync(other, 1024, round & 0x7f, 128, 32, stream));
    unusual(one, stream);
    MUST(cudaMemcpyAsync(output.data(), other, BYTES, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    digest(output.data(), BYTES);
    MUST(cudaFree(one));
    MUST(cudaMemcpy(output.data(), other, BYTES, cudaMemcpyDeviceToHost));
    digest(output.data(), BYTES);
    MUST(cudaFree(other));
}

// A graph that was captured, launched several times into two streams.
static void graphs(int round, cudaStream_t stream, cudaStream_t second,
                   std::vector<unsigned> &output) {
    unsigned *words = block(round, stream);
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch(words, 11, stream);
    MUST(cudaMemcpyAsync(words, words + WORDS / 2, BYTES / 4, cudaMemcpyDeviceToDevice, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiateWithFlags(&ready, graph, 0));
    for (int i = 0; i < 4; i++)
        MUST(cudaGraphLaunch(ready, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphLaunch(ready, second));
    MUST(cudaStreamSynchronize(second));
    MUST(cudaGraphExecDestroy(ready));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaMemcpy(output.data(), words, BYTES, cudaMemcpyDeviceToHost));
    digest(output.data(), BYTES);
    MUST(cudaFree(words));
}

// Blocks that are freed while one stream uses them and allocated at once for another.
static void between_streams(int round, const std::vector<cudaStream_t> &streams,
                            std::vector<unsigned> &output) {
    for (size_t i = 0; i < streams.size(); i++) {
        unsigned *first = block(round, streams[i]);
        launch(first, 1, streams[i]);
        MUST(cudaFree(first));
        unsigned *next = block(round + 2, streams[(i + 1) % streams.size()]);
        launch(next, 2, streams[(i + 1) % streams.size()]);
        MUST(cudaStreamSynchronize(streams[(i + 1) % streams.size()]));
        MUST(cudaMemcpy(output.data(), next, BYTES, cudaMemcpyDeviceToHost));
        digest(output.data(), BYTES);
        MUST(cudaFree(next));
    }
}

// In the thread's default stream, which is its own or everybody's.
static void of_thread(int number, std::vector<unsigned> *output) {
    output->resize(WORDS);
    MUST(cudaSetDevice(0));
    for (int round = 0; round < ROUNDS; round++) {
        unsigned *words = block(number + round, nullptr);
        launch(words, number, nullptr);
        MUST(cudaMemcpyAsync(output->data(), words, BYTES, cudaMemcpyDeviceToHost, nullptr));
        MUST(cudaStreamSynchronize(nullptr));
        MUST(cudaFree(words));
    }
}

static void threads() {
    std::vector<std::vector<unsigned>> outputs(THREADS);
    std::vector<std::thread> running;
    for (int i = 0; i < THREADS; i++)
        running.emplace_back(of_thread, i, &outputs[i]);
    for (std::thread &thread : running)
        thread.join();
    for (const auto &output : outputs)
        digest(output.data(), BYTES);
}

int main(int count, char **arguments) {
    CUmodule module;
    std::vector<unsigned> output(WORDS);
    std::vector<cudaStream_t> streams(STREAMS);
    MUST(count != 2);
    MUST(cudaFree(nullptr));
    MUST(cuModuleLoad(&module, arguments[1]));
    MUST(cuModuleGetFunction(&add, module, "add"));
    auto begin = std::chrono::steady_clock::now();
    alone(output);
    for (int round = 0; round < ROUNDS; round++)
        straight(round, nullptr, output);
    for (cudaStream_t &stream : streams)
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < ROUNDS; round++)
        straight(round, streams[0], output);
    for (int round = 0; round < ROUNDS / 4; round++)
        graphs(round, streams[0], streams[1], output);
    for (int round = 0; round < ROUNDS / 4; round++)
        between_streams(round, streams, output);
    threads();
    managed(streams[0]);
    from_driver_pool(streams[0]);
    MUST(cudaDeviceSynchronize());
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    print("submissions", took.count());
    return 0;
}

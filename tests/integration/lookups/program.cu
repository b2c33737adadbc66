// What nvcc makes of the simplest program; the runtime refuses a driver that is not NVIDIA's, after
// it has looked everything up.
#include <cstdio>

__global__ void fill(int *out) {
    *out = 1;
}

int main() {
    int *pointer = nullptr;
    std::printf("malloc %d\n", (int)cudaMalloc(&pointer, 4096));
    std::printf("free %d\n", (int)cudaFree(pointer));
    std::printf("last error %d\n", (int)cudaGetLastError());
    return 0;
}

// The kernels that tests launch. kernels.ptx is this file's PTX, so the same code runs on a real
// device; builtin.c does the same work on the host for the simulated one. To make it anew:
//   nvcc -ptx -arch=compute_75 kernels.cu && sed -i 's/^\.version .*/.version 7.0/' kernels.ptx
typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;

static __device__ u64 first()
{
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ u64 step()
{
    return (u64)gridDim.x * blockDim.x;
}

static __device__ u64 nanoseconds()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __device__ void pass(u64 microseconds)
{
    u64 until = nanoseconds() + microseconds * 1000;
    while (nanoseconds() < until) {
    }
}

// Bytes become a value.
extern "C" __global__ void fill(u8 *bytes, u64 count, u32 value)
{
    for (u64 i = first(); i < count; i += step()) {
        bytes[i] = (u8)value;
    }
}

// The same, but only after some time.
extern "C" __global__ void slow_fill(u8 *bytes, u64 count, u32 value, u64 microseconds)
{
    pass(microseconds);
    for (u64 i = first(); i < count; i += step()) {
        bytes[i] = (u8)value;
    }
}

// Only time passes.
extern "C" __global__ void spin(u64 microseconds)
{
    pass(microseconds);
}

extern "C" __global__ void copy(u8 *to, const u8 *from, u64 count)
{
    for (u64 i = first(); i < count; i += step()) {
        to[i] = from[i];
    }
}

// Adds to each of some 32-bit words.
extern "C" __global__ void add(u32 *words, u64 count, u32 addend)
{
    for (u64 i = first(); i < count; i += step()) {
        words[i] += addend;
    }
}

// Counts the bytes that are not a value.
extern "C" __global__ void check(const u8 *bytes, u64 count, u32 value, u32 *wrong)
{
    for (u64 i = first(); i < count; i += step()) {
        if (bytes[i] != (u8)value) {
            atomicAdd(wrong, 1u);
        }
    }
}

// Waits until a word, in memory that the host can write, has a value.
extern "C" __global__ void wait_flag(volatile u32 *flag, u32 value)
{
    while (*flag != value) {
    }
    __threadfence_system();
}

extern "C" __global__ void set_flag(volatile u32 *flag, u32 value)
{
    __threadfence_system();
    *flag = value;
}

// Writes one byte wherever it is told to: with a bad address, an illegal access.
extern "C" __global__ void poke(u8 *address, u32 value)
{
    *address = (u8)value;
}

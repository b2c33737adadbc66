// How a test gives the stand-in GPU the host code of a kernel. A program loads PTX and launches an
// entry by name; on the simulated device the name leads here, on a real one the PTX runs.
//
// Found with dlsym, so that a program needs no link with the stand-in:
//   __typeof__(&sim_register_kernel) reg = dlsym(RTLD_DEFAULT, "sim_register_kernel");
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stddef.h>
#include <stdint.h>

// One launch, as host code sees it. It may block; it must not call CUDA.
struct sim_launch {
    unsigned grid[3], block[3];
    size_t shared;
    void *const *parameters; // of each in turn, where its value is
    size_t count;            // of parameters
    // Where the bytes at an address of the device (or of mapped host memory) are; NULL when none
    // are there, which a kernel should answer with CUDA_ERROR_ILLEGAL_ADDRESS.
    char *(*reach)(uint64_t address, size_t bytes);
};

// Returned by a kernel that waits for the host, on a device that is stepped (SIM_STEP): it is
// called again later.
#define SIM_AGAIN (-1)

// Returns 0 or a CUresult, which becomes the context's sticky error.
typedef int (*sim_kernel)(const struct sim_launch *launch);

// Name: copied. A later registration replaces an earlier one. Returns 0, or -1 without memory.
// Thread-safe.
__attribute__((visibility("default"))) int sim_register_kernel(const char *name, sim_kernel code);

#endif

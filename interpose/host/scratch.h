/*
 * Memory for the length of a function call, for buffers that are too large for the smallest
 * possible stack of a thread (PTHREAD_STACK_MIN). It comes from the kernel, since the caller may be
 * inside the program's malloc. Only for functions that are rare and slow anyway.
 */
#ifndef BFC_INTERPOSE_SCRATCH_H
#define BFC_INTERPOSE_SCRATCH_H

#include <stddef.h>
#include <sys/mman.h>

/* Returns `size` bytes of zeros. NULL: the host has no memory. */
static inline void *bfc_scratch_begin(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static inline void bfc_scratch_end(void *memory, size_t size) {
    if (memory)
        munmap(memory, size);
}

#endif

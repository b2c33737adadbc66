// How often cudaMalloc, cudaFree and cudaSetDevice of this runtime were entered.
#include "tests/integration/runtime/entered.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "sim/runtime/runtime.h"

static const char *const names[] = {"cudaMalloc", "cudaFree", "cudaSetDevice"};
static atomic_ulong counts[sizeof names / sizeof *names];

static atomic_ulong *count_of(const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return &counts[i];
    return NULL;
}

void rt_entered(const char *name) {
    atomic_ulong *count = count_of(name);
    if (count)
        atomic_fetch_add(count, 1);
}

unsigned long cudaEntered(const char *name) {
    atomic_ulong *count = count_of(name);
    return count ? atomic_load(count) : 0;
}

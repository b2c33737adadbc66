// A library with a runtime of its own: what its calls of cudaMalloc and cudaFree come to.
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "tests/integration/runtime/entered.h"

void plugin_run(const char *who, int pairs, int alone);

static void show(const char *who, const char *what, int code, unsigned long entered) {
    printf("%s, %s: %d\n~ %s, %s: %lu\n", who, what, code, who, what, entered);
}

static unsigned long entered(void) {
    return cudaEntered("cudaMalloc") + cudaEntered("cudaFree");
}

// Where it is not alone, what it freed may be another thread's by now, and free it must not.
void plugin_run(const char *who, int pairs, int alone) {
    unsigned long before = entered();
    void *pointer = NULL;
    int code = (int)cudaMalloc(&pointer, 1000);
    show(who, "first", code, entered() - before);
    before = entered();
    code = (int)cudaFree(pointer);
    for (int i = 1; i < pairs && code == 0; i++) {
        code = (int)cudaMalloc(&pointer, 1000);
        code = code ? code : (int)cudaFree(pointer);
    }
    show(who, "pairs", code, entered() - before);
    before = entered();
    code = (int)cudaFree(alone ? pointer : (void *)&pointer);
    show(who, alone ? "free again" : "free of the stack", code, entered() - before);
    show(who, "last error", (int)cudaPeekAtLastError(), 0);
    cudaGetLastError();
}

// A library with a runtime of its own: what its calls of cudaMalloc and cudaFree come to.
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "tests/runtime/entered.h"

void plugin_run(const char *who, int pairs);

static void show(const char *who, const char *what, int code, unsigned long entered) {
    printf("%s, %s: %d\n~ %s, %s: %lu\n", who, what, code, who, what, entered);
}

static unsigned long entered(void) {
    return cudaEntered("cudaMalloc") + cudaEntered("cudaFree");
}

void plugin_run(const char *who, int pairs) {
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
    code = (int)cudaFree(pointer);
    show(who, "free again", code, entered() - before);
    show(who, "last error", (int)cudaPeekAtLastError(), 0);
    cudaGetLastError();
}

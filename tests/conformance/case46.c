/* However an entry point is asked for, it is one function: linked, by the library's handle, by the
 * default search, by cuGetProcAddress. */
#include "tests/conformance/gpu.h"

static void look(const char *name, const char *symbol, int version, void *linked) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *entry = NULL;
    MUST(cuGetProcAddress(name, &entry, version, 0, NULL));
    printf("%s: by handle %s, by the default search %s, by cuGetProcAddress %s\n", name,
           dlsym(library, symbol) == linked ? "the same" : "another",
           dlsym(RTLD_DEFAULT, symbol) == linked ? "the same" : "another",
           entry == linked ? "the same" : "another");
}

int main(void) {
    const int version = 13000;
    MUST(cuInit(0));
    look("cuMemAlloc", TEXT(cuMemAlloc), version, __extension__(void *) cuMemAlloc);
    look("cuMemFree", TEXT(cuMemFree), version, __extension__(void *) cuMemFree);
    look("cuMemGetInfo", TEXT(cuMemGetInfo), version, __extension__(void *) cuMemGetInfo);
    look("cuMemFreeAsync", TEXT(cuMemFreeAsync), version, __extension__(void *) cuMemFreeAsync);
    look("cuCtxDestroy", TEXT(cuCtxDestroy), version, __extension__(void *) cuCtxDestroy);
    look("cuLaunchKernel", TEXT(cuLaunchKernel), version, __extension__(void *) cuLaunchKernel);
    look("cuStreamEndCapture", TEXT(cuStreamEndCapture), version,
         __extension__(void *) cuStreamEndCapture);
    return 0;
}

// cuGetProcAddress in both forms: versions, flags, statuses, names.
#define CUDA_ENABLE_DEPRECATED
#include "sim/tests/check.h"

#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

typedef CUresult (*look_up_4)(const char *, void **, int, cuuint64_t);

static void *self(const char *name) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    CHECK(symbol != NULL);
    return symbol;
}

static void finds(const char *name, int version, cuuint64_t flags, const char *symbol) {
    void *found = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    DO(cuGetProcAddress(name, &found, version, flags, &status));
    CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
    if (found != self(symbol)) {
        fprintf(stderr, "%s at %d with %d is not %s\n", name, version, (int)flags, symbol);
        exit(1);
    }
}

static void fails(const char *name, int version, CUdriverProcAddressQueryResult wanted) {
    void *found = &found;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress(name, &found, version, 0, &status));
    CHECK(status == wanted && found == NULL);
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress(name, &found, version, 0, NULL));
}

int main(void) {
    const cuuint64_t threads = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    void *found = NULL;
    finds("cuMemAlloc", 2000, 0, "cuMemAlloc");
    finds("cuMemAlloc", 3019, 0, "cuMemAlloc");
    finds("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
    finds("cuMemAlloc", 13000, threads, "cuMemAlloc_v2");
    finds("cuMemcpyHtoDAsync", 13000, 0, "cuMemcpyHtoDAsync_v2");
    finds("cuMemcpyHtoDAsync", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, "cuMemcpyHtoDAsync_v2");
    finds("cuMemcpyHtoDAsync", 13000, threads, "cuMemcpyHtoDAsync_v2_ptsz");
    finds("cuMemcpyHtoD", 13000, threads, "cuMemcpyHtoD_v2_ptds");
    finds("cuCtxCreate", 3020, 0, "cuCtxCreate_v2");
    finds("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
    finds("cuCtxCreate", 12050, 0, "cuCtxCreate_v4");
    finds("cuCtxSynchronize", 2000, 0, "cuCtxSynchronize");
    finds("cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2");
    finds("cuDevicePrimaryCtxReset", 7000, 0, "cuDevicePrimaryCtxReset");
    finds("cuDevicePrimaryCtxReset", 11000, 0, "cuDevicePrimaryCtxReset_v2");
    finds("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    finds("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
    fails("cuMemAlloc", 1000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    fails("cuMemAlloc_v2", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    fails("cuNoSuchFunction", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    fails("", 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(NULL, &found, 13000, 0, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", NULL, 13000, 0, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &found, 13000, 64, NULL));

    look_up_4 old = NULL;
    void *symbol = self("cuGetProcAddress");
    memcpy(&old, &symbol, sizeof old);
    DO(old("cuMemFree", &found, 12000, 0));
    CHECK(found == self("cuMemFree_v2"));
    return 0;
}

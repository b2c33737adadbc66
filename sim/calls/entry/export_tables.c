// Tables of functions without names, as NVIDIA's libraries ask for by id. These two are the
// stand-in's own: the driver's functions themselves, past the symbol table, which a library may
// have redirected; and a table in which not all are functions.
#include "sim/border/border.h"

#include <string.h>

static void (*const by_number[])(void) = {
    (void (*)(void))cuLaunchKernel,  (void (*)(void))cuMemcpyDtoDAsync, NULL,
    (void (*)(void))cuMemsetD8Async, (void (*)(void))cuCtxSynchronize,
};

static CUresult table_of(const void **table, const CUuuid *id) {
    static const void *functions[1 + sizeof by_number / sizeof *by_number];
    static const void *with_number[] = {(void *)(3 * sizeof(void *)), (void *)by_number, (void *)1};
    if (table == NULL || id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    functions[0] = (void *)sizeof functions;
    memcpy(functions + 1, by_number, sizeof by_number);
    if (memcmp(id->bytes, "sim: functions 1", sizeof id->bytes) == 0) {
        *table = functions;
    } else if (memcmp(id->bytes, "sim: a number  1", sizeof id->bytes) == 0) {
        *table = with_number;
    } else {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}
SIM_CALL(cuGetExportTable, SIM_UNCOUNTED, (const void **table, const CUuuid *id),
         table_of(table, id))

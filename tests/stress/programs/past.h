/* Memory that another library takes past the pool, beside it or once the program has freed much. */
#ifndef BFC_TESTS_STRESS_PAST_H
#define BFC_TESTS_STRESS_PAST_H

#include "tests/stress/programs/worker.h"

enum past_kind { STREAM_ORDERED, MAPPED, MANAGED, PITCHED, PAST_KINDS };
enum { ROW = 1 << 12, MAPPED_GRAIN = 2 << 20 };

struct past {
    enum past_kind kind;
    CUdeviceptr start;
    size_t mapped;
    CUmemGenericAllocationHandle handle;
};

static void map_memory(struct past *past, size_t bytes) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    MUST(cuCtxGetDevice(&wanted.location.id));
    access.location = wanted.location;
    past->mapped = (bytes + MAPPED_GRAIN - 1) / MAPPED_GRAIN * MAPPED_GRAIN;
    MUST(cuMemCreate(&past->handle, past->mapped, &wanted, 0));
    MUST(cuMemAddressReserve(&past->start, past->mapped, 0, 0, 0));
    MUST(cuMemMap(past->start, past->mapped, 0, past->handle, 0));
    MUST(cuMemSetAccess(past->start, past->mapped, &access, 1));
}

static void unmap_memory(const struct past *past) {
    MUST(cuMemUnmap(past->start, past->mapped));
    MUST(cuMemRelease(past->handle));
    MUST(cuMemAddressFree(past->start, past->mapped));
}

/* In the stream's context, which is current. */
static struct past take_past(enum past_kind kind, size_t bytes, CUstream stream) {
    struct past past = {.kind = kind};
    size_t pitch;
    if (kind == STREAM_ORDERED)
        MUST(cuMemAllocAsync(&past.start, bytes, stream));
    else if (kind == MANAGED)
        MUST(cuMemAllocManaged(&past.start, bytes, CU_MEM_ATTACH_GLOBAL));
    else if (kind == PITCHED)
        MUST(cuMemAllocPitch(&past.start, &pitch, ROW, (bytes + ROW - 1) / ROW, 4));
    else
        map_memory(&past, bytes);
    return past;
}

static void give_past(const struct past *past, CUstream stream) {
    if (past->kind == STREAM_ORDERED) {
        MUST(cuMemFreeAsync(past->start, stream));
        return;
    }
    MUST(cuStreamSynchronize(stream)); /* unmapping waits for nothing */
    if (past->kind == MAPPED)
        unmap_memory(past);
    else
        MUST(cuMemFree(past->start));
}

#endif

#include "interpose/features/sleep/copy_pages.h"

#include "base/numbers.h"
#include "interpose/features/sleep/store.h"

#define CHUNK ((uint64_t)4 << 20)

CUresult bfc_page_copier_open(const struct bfc_driver *driver, struct bfc_page_copier *copier) {
    *copier = (struct bfc_page_copier){{NULL, NULL}, {NULL, NULL}};
    if (!driver->cuStreamCreate || !driver->cuMemHostAlloc || !driver->cuMemcpyDtoHAsync_v2 ||
        !driver->cuMemcpyHtoDAsync_v2 || !driver->cuStreamSynchronize || !driver->cuMemFreeHost ||
        !driver->cuStreamDestroy_v2)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < 2 && result == CUDA_SUCCESS; i++) {
        result = driver->cuMemHostAlloc(&copier->buffers[i], CHUNK, 0);
        if (result == CUDA_SUCCESS)
            result = driver->cuStreamCreate(&copier->streams[i], CU_STREAM_NON_BLOCKING);
    }
    if (result != CUDA_SUCCESS)
        bfc_page_copier_close(driver, copier);
    return result;
}

void bfc_page_copier_close(const struct bfc_driver *driver, struct bfc_page_copier *copier) {
    for (int i = 0; i < 2; i++) {
        if (copier->streams[i])
            driver->cuStreamDestroy_v2(copier->streams[i]);
        if (copier->buffers[i])
            driver->cuMemFreeHost(copier->buffers[i]);
    }
    *copier = (struct bfc_page_copier){{NULL, NULL}, {NULL, NULL}};
}

/* A range of device memory that is being copied to or from a file, where its bytes begin at the
 * offset `at`. */
struct transfer {
    const struct bfc_driver *driver;
    const struct bfc_page_copier *copier;
    CUdeviceptr start;
    uint64_t bytes, at;
    int file, *error;
    bool (*goes_on)(void);
};

static uint64_t chunk_size(const struct transfer *t, uint64_t done) {
    return bfc_min(CHUNK, t->bytes - done);
}

/* Returns which of the two buffers and streams the chunk at this offset of its range uses: one
 * chunk uses the first, the next one the second, and so on. */
static int turn_of(uint64_t done) {
    return (int)(done / CHUNK % 2);
}

static CUresult begin_out(const struct transfer *t, uint64_t done) {
    if (!t->goes_on())
        return CUDA_ERROR_NOT_READY;
    return t->driver->cuMemcpyDtoHAsync_v2(t->copier->buffers[turn_of(done)], t->start + done,
                                           chunk_size(t, done), t->copier->streams[turn_of(done)]);
}

static CUresult end_out(const struct transfer *t, uint64_t done) {
    CUresult result = t->driver->cuStreamSynchronize(t->copier->streams[turn_of(done)]);
    if (result != CUDA_SUCCESS)
        return result;
    *t->error = bfc_sleep_store_write(t->file, t->at + done, t->copier->buffers[turn_of(done)],
                                      chunk_size(t, done));
    return *t->error ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

/* Waits for the copies in both streams. A failed wait is repeated, because it does not show that
 * the copy has ended: the caller unmaps pages after a failed copy, and a copy still under way would
 * then fail the whole context. */
static CUresult wait_for_both(const struct transfer *t, CUresult result) {
    for (int i = 0; i < 2; i++)
        for (int tries = 0; tries < 8; tries++) {
            CUresult waited = t->driver->cuStreamSynchronize(t->copier->streams[i]);
            result = result == CUDA_SUCCESS ? waited : result;
            if (waited == CUDA_SUCCESS)
                break;
        }
    return result;
}

CUresult bfc_copy_pages_out(const struct bfc_driver *driver, const struct bfc_page_copier *copier,
                            CUdeviceptr start, uint64_t bytes, int file, uint64_t at,
                            bool (*goes_on)(void), int *error) {
    const struct transfer t = {driver, copier, start, bytes, at, file, error, goes_on};
    CUresult result = begin_out(&t, 0);
    for (uint64_t done = 0; done < bytes && result == CUDA_SUCCESS; done += CHUNK) {
        if (done + CHUNK < bytes)
            result = begin_out(&t, done + CHUNK);
        if (result == CUDA_SUCCESS)
            result = end_out(&t, done);
    }
    return wait_for_both(&t, result);
}

static CUresult bring_in(const struct transfer *t, uint64_t done) {
    CUstream stream = t->copier->streams[turn_of(done)];
    void *buffer = t->copier->buffers[turn_of(done)];
    if (!t->goes_on())
        return CUDA_ERROR_NOT_READY;
    CUresult result = t->driver->cuStreamSynchronize(stream);
    if (result != CUDA_SUCCESS)
        return result;
    *t->error = bfc_sleep_store_read(t->file, t->at + done, buffer, chunk_size(t, done));
    return *t->error ? CUDA_ERROR_OPERATING_SYSTEM
                     : t->driver->cuMemcpyHtoDAsync_v2(t->start + done, buffer, chunk_size(t, done),
                                                       stream);
}

CUresult bfc_copy_pages_in(const struct bfc_driver *driver, const struct bfc_page_copier *copier,
                           CUdeviceptr start, uint64_t bytes, int file, uint64_t at,
                           bool (*goes_on)(void), int *error) {
    const struct transfer t = {driver, copier, start, bytes, at, file, error, goes_on};
    CUresult result = CUDA_SUCCESS;
    for (uint64_t done = 0; done < bytes && result == CUDA_SUCCESS; done += CHUNK)
        result = bring_in(&t, done);
    return wait_for_both(&t, result);
}

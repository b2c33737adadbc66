/*
 * Copies the contents of pages between a device and the store (store.h): in chunks through two
 * pinned buffers, each with a stream of its own, so that one chunk crosses the bus while the other
 * is written or read.
 *
 * Not thread-safe. The arena's context must be current, and the thread in relaxed capture mode.
 */
#ifndef BFC_INTERPOSE_COPY_PAGES_H
#define BFC_INTERPOSE_COPY_PAGES_H

#include "interpose/driver/driver.h"

/* Buffers and streams of one context. A job that sleeps keeps them, since a device that is full
 * when it wakes might refuse new ones. */
struct bfc_page_copier {
    void *buffers[2];
    CUstream streams[2];
};

CUresult bfc_page_copier_open(const struct bfc_driver *driver, struct bfc_page_copier *copier);
void bfc_page_copier_close(const struct bfc_driver *driver, struct bfc_page_copier *copier);

/*
 * Copy device memory from `start` on into the store's file from the offset `at` on, or back.
 * `goes_on`, which is asked before each chunk, may end the copy. Return the driver's error;
 * CUDA_ERROR_OPERATING_SYSTEM if the file cannot be written or read, with errno in `*error`;
 * CUDA_ERROR_NOT_READY if goes_on returned false. No copy is under way when they return.
 */
CUresult bfc_copy_pages_out(const struct bfc_driver *driver, const struct bfc_page_copier *copier,
                            CUdeviceptr start, uint64_t bytes, int file, uint64_t at,
                            bool (*goes_on)(void), int *error);
CUresult bfc_copy_pages_in(const struct bfc_driver *driver, const struct bfc_page_copier *copier,
                           CUdeviceptr start, uint64_t bytes, int file, uint64_t at,
                           bool (*goes_on)(void), int *error);

#endif

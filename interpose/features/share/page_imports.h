/* Maps pages of another process: all pages that hold a part of a block, next to each other as in
 * the exporter, with access for the importing device and the memory's device. No lock is held. */
#ifndef BFC_INTERPOSE_PAGE_IMPORTS_H
#define BFC_INTERPOSE_PAGE_IMPORTS_H

#include "interpose/driver/driver.h"
#include "interpose/features/share/token.h"

struct bfc_page_import {
    CUdeviceptr base; /* address of the first page */
    uint64_t bytes;   /* bytes of all pages */
};

/* Maps the pages of a token's row for the device of the current context. CUDA_ERROR_INVALID_HANDLE:
 * the exporter has ended, does not answer or has freed the block, which is logged; else the
 * driver's error. A failure leaves nothing behind. */
CUresult bfc_page_import(const struct bfc_driver *driver, const struct bfc_token *token,
                         const struct bfc_row *row, struct bfc_page_import *import);

/* Waits for the context's work and unmaps the pages, as cuIpcCloseMemHandle does. On an error, the
 * driver's, which may come from earlier work, the pages stay mapped. */
CUresult bfc_page_import_close(const struct bfc_driver *driver,
                               const struct bfc_page_import *import, CUcontext context);

/* Unmaps pages that no work uses: the program never got their address, or the context has ended. */
void bfc_page_import_drop(const struct bfc_driver *driver, const struct bfc_page_import *import);

#endif

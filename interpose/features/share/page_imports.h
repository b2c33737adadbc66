/* Maps a block that lies in pages of another process: all pages that hold a part of the block, next
 * to each other as in that process. The importing device and the memory's device get access. The
 * functions hold no lock. */
#ifndef BFC_INTERPOSE_PAGE_IMPORTS_H
#define BFC_INTERPOSE_PAGE_IMPORTS_H

#include "interpose/driver/driver.h"
#include "interpose/features/share/token.h"

struct bfc_page_import {
    CUdeviceptr base; /* address of the first page */
    uint64_t bytes;   /* bytes of all pages */
};

/* Maps the pages of the block that the token and its row describe, for the device of the current
 * context. The result CUDA_ERROR_INVALID_HANDLE means that the exporter has ended, does not answer
 * or has freed the block, and the log says which; other errors are the driver's. After an error
 * nothing stays mapped. */
CUresult bfc_page_import(const struct bfc_driver *driver, const struct bfc_token *token,
                         const struct bfc_row *row, struct bfc_page_import *import);

/* Waits for all work of the context and unmaps the pages of an import, as cuIpcCloseMemHandle does.
 * If the driver returns an error, which may be one of earlier work, the pages stay mapped. */
CUresult bfc_page_import_close(const struct bfc_driver *driver,
                               const struct bfc_page_import *import, CUcontext context);

/* Unmaps the pages of an import without a wait, for pages that no work uses: the program never got
 * their address, or the context has ended. */
void bfc_page_import_drop(const struct bfc_driver *driver, const struct bfc_page_import *import);

#endif

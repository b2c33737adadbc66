/*
 * Another process's pages, behind addresses of this one.
 *
 * All pages that hold a part of the block are mapped, next to each other as in the exporter, and
 * access is given to the importing device and to the one that the memory is on. No lock is held.
 */
#ifndef BFC_INTERPOSE_PAGE_IMPORTS_H
#define BFC_INTERPOSE_PAGE_IMPORTS_H

#include "interpose/driver/driver.h"
#include "interpose/features/share/token.h"

struct bfc_page_import {
    CUdeviceptr base; /* of the first page */
    uint64_t bytes;   /* of all pages */
};

/*
 * Maps the pages of a token's row for the current context's device. CUDA_ERROR_INVALID_HANDLE: the
 * exporter has ended, does not answer or has freed the block, which a line says; else the driver's
 * error. Nothing is left of a failure.
 */
CUresult bfc_page_import(const struct bfc_driver *driver, const struct bfc_token *token,
                         const struct bfc_row *row, struct bfc_page_import *import);

/*
 * Unmaps it after its context's work, as the driver's own close does. An error is the driver's, of
 * earlier work too: it is still mapped then.
 */
CUresult bfc_page_import_close(const struct bfc_driver *driver,
                               const struct bfc_page_import *import, CUcontext context);

/* Unmaps what no work can use: it was never shown, or its context has ended. */
void bfc_page_import_drop(const struct bfc_driver *driver, const struct bfc_page_import *import);

#endif

/* What cuIpcGetMemHandle gives a program for a pooled block: a token (token.h), valid until the
 * block is freed. Pages have no handle that could be exported, so importers ask for their
 * descriptors (page_exports.h). Thread-safe; no lock is held across a driver call. */
#ifndef BFC_INTERPOSE_EXPORT_TOKEN_H
#define BFC_INTERPOSE_EXPORT_TOKEN_H

#include "interpose/pointers/pointer_lookup.h"

/* Exports a block; `handle` is written on success only. Errors: the driver's, or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult bfc_export_token(const struct bfc_driver *driver, CUipcMemHandle *handle,
                          const struct bfc_pointer *span);

/* Withdraws the token of a block that was freed. */
void bfc_export_token_ended(const CUipcMemHandle *handle);

#endif

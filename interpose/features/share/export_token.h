/*
 * What cuIpcGetMemHandle gives a program for a pooled block: a token (token.h), good until the
 * block is freed. Pages have no handle that could be exported: their descriptors stand behind the
 * token (page_exports.h). Thread-safe; no lock is held across a driver call.
 */
#ifndef BFC_INTERPOSE_EXPORT_TOKEN_H
#define BFC_INTERPOSE_EXPORT_TOKEN_H

#include "interpose/pointers/pointer_lookup.h"

/* `handle` is written on success alone; the driver's error, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult bfc_export_token(const struct bfc_driver *driver, CUipcMemHandle *handle,
                          const struct bfc_pointer *span);

/* The block of a token that was given out is no more. */
void bfc_export_token_ended(const CUipcMemHandle *handle);

#endif

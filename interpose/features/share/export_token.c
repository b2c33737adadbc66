/* Exports pooled blocks to other processes, by tokens in place of CUDA IPC handles. */
#include "interpose/features/share/share.h"

#include <errno.h>
#include <string.h>

#include "interpose/config/log.h"
#include "interpose/features/share/page_exports.h"
#include "interpose/features/share/token_table.h"
#include "interpose/pointers/block_attributes.h"
#include "interpose/reuse/sharing.h"

/* Returns the error that cuIpcGetMemHandle would return if the context has failed or none is
 * current. An export of a block in pages makes no other driver call, so nothing else would detect a
 * failed context. */
static CUresult ask_context(const struct bfc_driver *driver) {
    size_t free_bytes, total_bytes;
    return driver->cuMemGetInfo_v2 ? driver->cuMemGetInfo_v2(&free_bytes, &total_bytes)
                                   : CUDA_SUCCESS;
}

/* Fills in a row of the token table: the driver's handle of the block's region, or, for a block in
 * pages, which pages the block lies in. */
static CUresult describe_region(const struct bfc_driver *driver, const struct bfc_pointer *span,
                                struct bfc_row *row) {
    const struct bfc_block_info *block = &span->block;
    CUipcMemHandle region;
    if (bfc_page_exports_describe(span->arena, block, row))
        return ask_context(driver);
    *row = (struct bfc_row){.region_size = block->region_size,
                            .offset = block->start - block->region_start,
                            .size = block->requested};
    CUresult result = driver->cuIpcGetMemHandle(&region, block->region_start);
    memcpy(row->handle, &region, result == CUDA_SUCCESS ? sizeof row->handle : 0);
    return result;
}

/* Makes the block's pages available to processes that have the token. False: the host has no
 * memory, or allows no thread. */
static bool offer_pages(const struct bfc_pointer *span, const struct bfc_token *token) {
    if (!bfc_page_exports_add(token, span->arena, &span->block))
        return false;
    if (bfc_page_server_start())
        return true;
    bfc_page_exports_end(token);
    return false;
}

static void retire_token(const struct bfc_token *token) {
    bfc_token_table_retire(token);
    bfc_page_exports_end(token);
}

static bool make_token(const struct bfc_pointer *span, struct bfc_row *row,
                       struct bfc_token *token) {
    *token = (struct bfc_token){.generation = span->block.id};
    if (!bfc_token_table_publish(token, row)) {
        bfc_log(BFC_LOG_ERROR, "cuIpcGetMemHandle: no room for a token: %s in /dev/shm",
                strerror(errno));
        return false;
    }
    if (!row->pages || offer_pages(span, token))
        return true;
    bfc_log(BFC_LOG_ERROR, "cuIpcGetMemHandle: no thread or memory for importers of pages: %s",
            strerror(errno));
    bfc_token_table_retire(token);
    return false;
}

/* Stores the token that was made for the block. If another thread has exported the block meanwhile,
 * that thread's token is used. */
static bool note_token(const struct bfc_pointer *span, const struct bfc_token *made,
                       CUipcMemHandle *handle) {
    memcpy(handle, made, sizeof *handle);
    bool noted = bfc_block_attributes_set_handle(span->id, span->arena, handle);
    if (!noted || memcmp(made, handle, sizeof *handle) != 0)
        retire_token(made);
    return noted;
}

/* Sets `handle` to the block's token, and makes one if there is none yet. A block has only one
 * token, since programs tell memory apart by its handle. */
static bool find_or_make_token(const struct bfc_pointer *span, struct bfc_row *row,
                               CUipcMemHandle *handle) {
    struct bfc_block_attributes attributes;
    struct bfc_token made;
    if (bfc_block_attributes_find(span->id, &attributes) && attributes.exported) {
        *handle = attributes.handle;
        return true;
    }
    int before = errno;
    bool noted = make_token(span, row, &made) && note_token(span, &made, handle);
    errno = before;
    return noted;
}

CUresult bfc_export_token(const struct bfc_driver *driver, CUipcMemHandle *handle,
                          const struct bfc_pointer *span) {
    struct bfc_row row;
    if (!handle)
        return driver->cuIpcGetMemHandle(NULL, span->start);
    CUresult result = bfc_share_block(driver, span->arena, span->start);
    if (result == CUDA_SUCCESS)
        result = describe_region(driver, span, &row);
    if (result == CUDA_SUCCESS && !find_or_make_token(span, &row, handle))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

void bfc_export_token_ended(const CUipcMemHandle *handle) {
    struct bfc_token token;
    memcpy(&token, handle, sizeof token);
    retire_token(&token);
}

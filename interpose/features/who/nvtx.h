/*
 * NVTX ranges as tags (BFC_TAGS=nvtx). NVTX loads the library that NVTX_INJECTION64_PATH names, its
 * injection; ours calls the injection that was set before it (the next one). NVTX is header-only:
 * each library of a program has its own copy, and each copy initializes the injection.
 *
 * The declarations follow NVTX 3 (nvtxDetail/nvtxTypes.h of the CUDA toolkit).
 */
#ifndef BFC_INTERPOSE_NVTX_H
#define BFC_INTERPOSE_NVTX_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

struct bfc_nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_kind;
    uint32_t color;
    int32_t payload_kind, zero;
    uint64_t payload;
    int32_t message_kind; /* enum bfc_nvtx_message */
    const void *message;
};

enum bfc_nvtx_message { BFC_NVTX_BYTES = 1, BFC_NVTX_WIDE, BFC_NVTX_REGISTERED };

typedef const void *bfc_nvtx_get_table(uint32_t id);

/* Each copy of NVTX calls this once. Returns 1, or 0 if it failed: then NVTX makes no more calls.
 * Thread-safe. */
int InitializeInjectionNvtx2(bfc_nvtx_get_table *get_table);

#endif

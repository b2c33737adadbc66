/*
 * NVTX ranges as tags (BFC_TAGS=nvtx): this library is the injection that NVTX looks for by the
 * variable NVTX_INJECTION64_PATH, and hands all calls on to the one that was set before. NVTX is
 * header-only: each library of a program initializes its own copy.
 *
 * What is declared here is what NVTX 3 lays down for injections (nvtxDetail/nvtxTypes.h of the CUDA
 * toolkit).
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

/* NVTX calls it, once for each copy of itself. 0: it failed, and NVTX does nothing. Thread-safe. */
int InitializeInjectionNvtx2(bfc_nvtx_get_table *get_table);

#endif

/* What a pointer points into. */
#include "interpose/span.h"

#include "interpose/imports.h"
#include "interpose/process.h"

static void describe_block(struct bfc_domain *domain, CUdeviceptr pointer, struct bfc_span *span) {
    struct bfc_block_info *block = &span->block;
    span->kind = BFC_SPAN_GONE;
    if (!bfc_pool_find(domain->pool, pointer, block) || !block->live ||
        pointer - block->start >= block->requested)
        return;
    span->kind = BFC_SPAN_POOLED;
    span->start = block->start;
    span->size = block->requested;
    span->id = block->id;
    span->domain = domain;
}

void bfc_span_of(CUdeviceptr pointer, struct bfc_span *span) {
    struct bfc_domain *domain = bfc_process_if_made() ? bfc_domain_of(pointer) : NULL;
    span->kind = BFC_SPAN_FOREIGN;
    if (domain)
        describe_block(domain, pointer, span);
    else
        bfc_imports_find(pointer, span);
}

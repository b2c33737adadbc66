/* The feature `share`: CUDA IPC of pooled blocks (BFC_IPC). */
#include "interpose/features/share/share.h"
#include "interpose/table/feature.h"

static const struct bfc_feature share = {
    .name = "share",
    .context_ended = bfc_imports_context_ended,
    .contexts_forgotten = bfc_imports_collect,
    .find_import = bfc_imports_find,
    .import_has_sync_memops = bfc_import_sync_memops,
    .set_import_sync_memops = bfc_import_set_sync_memops,
    .export_block = bfc_export_token,
    .export_ended = bfc_export_token_ended,
    .open_import = bfc_import_open,
    .close_import = bfc_import_close,
};
BFC_REGISTER_FEATURE(share);

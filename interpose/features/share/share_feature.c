/* The feature `share`: CUDA IPC of pooled blocks (BFC_IPC). */
#include "interpose/features/share/export_token.h"
#include "interpose/features/share/imports.h"
#include "interpose/table/feature.h"

static bool find_import(CUdeviceptr pointer, struct bfc_pointer *found) {
    struct bfc_imported imported;
    enum bfc_import_answer answer = bfc_imports_find(pointer, &imported);
    if (answer == BFC_IMPORT_GONE)
        found->kind = BFC_POINTER_GONE;
    if (answer == BFC_IMPORT_OPEN) {
        found->kind = BFC_POINTER_IMPORTED;
        found->start = imported.start;
        found->size = imported.size;
        found->id = imported.id;
        found->of_pages = imported.of_pages;
    }
    return answer != BFC_IMPORT_FOREIGN;
}

static void forget_imports(const struct bfc_driver *driver, CUcontext context) {
    (void)driver;
    bfc_imports_context_ended(context);
}

static const struct bfc_feature share = {
    .name = "share",
    .context_ended = forget_imports,
    .find_import = find_import,
    .import_has_sync_memops = bfc_import_sync_memops,
    .set_import_sync_memops = bfc_import_set_sync_memops,
    .export_block = bfc_export_token,
    .export_ended = bfc_export_token_ended,
    .open_import = bfc_import_open,
    .close_import = bfc_import_close,
};
BFC_REGISTER_FEATURE(share);

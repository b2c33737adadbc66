/*
 * Blocks of other processes' pools that this one has opened by their tokens.
 *
 * The driver maps whole regions. Two blocks of one region share its mapping, so the driver is asked
 * again only for a block that is open already (old drivers refuse that, new ones count). Closing
 * works by the pointer that opening returned, and the driver unmaps the region after the last.
 *
 * A block that lies in pages is mapped by itself (page_imports.h), and opened again without the
 * driver.
 *
 * Each function has the driver's own signature, result and thread-safety. The lock is held across
 * no driver call.
 */
#ifndef BFC_INTERPOSE_IMPORTS_H
#define BFC_INTERPOSE_IMPORTS_H

#include "interpose/driver/driver.h"

CUresult bfc_import_open(const struct bfc_driver *driver, CUdeviceptr *pointer,
                         CUipcMemHandle handle, unsigned flags,
                         CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned));
CUresult bfc_import_close(const struct bfc_driver *driver, CUdeviceptr pointer);

enum bfc_import_answer {
    BFC_IMPORT_FOREIGN, /* the address is in no mapping of ours */
    BFC_IMPORT_OPEN,    /* in an imported block */
    BFC_IMPORT_GONE,    /* in a mapping of ours, and in no block that is open */
};

struct bfc_imported {
    CUdeviceptr start;
    uint64_t size;      /* as asked, in bytes */
    uint64_t id;        /* of the import, in this process; never used again */
    CUcontext of_pages; /* of memory in pages: the context that opened it; else NULL */
};

/* Describes the imported block in which an address lies; no other answer sets it. */
enum bfc_import_answer bfc_imports_find(CUdeviceptr address, struct bfc_imported *imported);

/* What the program set on an imported block by CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
bool bfc_import_sync_memops(uint64_t id);
void bfc_import_set_sync_memops(uint64_t id, bool on);

/* A context has ended, and its mappings with it. */
void bfc_imports_context_ended(CUcontext context);

#endif

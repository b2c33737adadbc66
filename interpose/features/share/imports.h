/*
 * Blocks of other processes' pools that this process has opened by their tokens.
 *
 * The driver maps whole regions. Blocks of one region share its mapping, and the driver is called
 * again only for a block that is open already (old drivers refuse that, new ones count). A close
 * names the pointer that opening returned; the driver unmaps the region after the last close. A
 * block in pages has a mapping of its own (page_imports.h), which is opened again without the
 * driver.
 *
 * Each function has the signature, results and thread-safety of the driver's. No lock is held
 * across a driver call.
 */
#ifndef BFC_INTERPOSE_IMPORTS_H
#define BFC_INTERPOSE_IMPORTS_H

#include "interpose/driver/driver.h"

CUresult bfc_import_open(const struct bfc_driver *driver, CUdeviceptr *pointer,
                         CUipcMemHandle handle, unsigned flags,
                         CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned));
CUresult bfc_import_close(const struct bfc_driver *driver, CUdeviceptr pointer);

enum bfc_import_answer {
    BFC_IMPORT_FOREIGN, /* the address is in no imported region */
    BFC_IMPORT_OPEN,    /* the address is in an imported block that is open */
    BFC_IMPORT_GONE,    /* the address is in an imported region, but in no block that is open */
};

struct bfc_imported {
    CUdeviceptr start;
    uint64_t size;      /* bytes that the exporter's program asked for */
    uint64_t id;        /* id of the import in this process; never used again */
    CUcontext of_pages; /* the context that opened a block in pages; NULL: it lies in a region */
};

/* Describes the imported block at an address; `imported` is set only for BFC_IMPORT_OPEN. */
enum bfc_import_answer bfc_imports_find(CUdeviceptr address, struct bfc_imported *imported);

/* The value of CU_POINTER_ATTRIBUTE_SYNC_MEMOPS that the program set for an imported block. */
bool bfc_import_sync_memops(uint64_t id);
void bfc_import_set_sync_memops(uint64_t id, bool on);

/* Forgets the mappings of a context that has ended. */
void bfc_imports_context_ended(CUcontext context);

#endif

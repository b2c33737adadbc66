/* Opens and closes blocks of other processes by their tokens. */
#include "interpose/features/share/share.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/context/contexts.h"
#include "interpose/features/share/page_imports.h"
#include "interpose/features/share/token_table.h"
#include "interpose/reuse/sharing.h"

/* The first id of an opened block of another process. This process's own blocks have lower ids, so
 * that no id names two blocks. */
#define IMPORT_IDS (UINT64_C(1) << 61)

/* A block of another process that this process has opened. */
struct import {
    CUdeviceptr start;
    uint64_t size, id;
    uint64_t table, generation; /* fields of the block's token, which together identify the block */
    unsigned count;             /* how often the block was opened, less how often it was closed */
    bool sync_memops;
    struct import *next;
};

/* One region of another process, or the pages of one block, mapped into one context. While a
 * mapping is listed, 1 <= opens <= uses: once memory is mapped, blocks in it are mostly opened
 * without the driver. Several contexts may have mapped one region, even at the same address. */
struct mapping {
    /* identifies the mapping: the driver's handle of the region; for pages, the block's token */
    CUipcMemHandle handle;
    bool has_pages;
    CUcontext context; /* NULL: it has ended */
    CUdeviceptr base;
    uint64_t size; /* bytes of the mapping */
    /* how often the driver opened the mapping, less how often it closed the mapping */
    unsigned opens;
    unsigned uses; /* how often blocks in the mapping were opened, less how often closed */
    struct import *imports;
    struct mapping *next;
};

static struct {
    pthread_mutex_t lock;
    struct mapping *mappings;
    uint64_t last_id;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool any; /* atomic: whether this process ever opened a block of another process */

static bool imports_exist(void) {
    return bfc_load_acquire(&any) && bfc_process_if_made();
}

static struct import *import_at(const struct mapping *mapping, CUdeviceptr start) {
    struct import *import = mapping->imports;
    while (import && import->start != start)
        import = import->next;
    return import;
}

static struct import *import_of_id(uint64_t id) {
    for (struct mapping *mapping = all.mappings; mapping; mapping = mapping->next)
        for (struct import *import = mapping->imports; import; import = import->next)
            if (import->id == id)
                return import;
    return NULL;
}

static struct import *add_import(struct mapping *mapping, CUdeviceptr start) {
    struct import *import = calloc(1, sizeof *import);
    if (import) {
        *import = (struct import){.start = start, .next = mapping->imports};
        mapping->imports = import;
    }
    return import;
}

static void remove_import(struct mapping *mapping, struct import *import) {
    struct import **link = &mapping->imports;
    while (*link != import)
        link = &(*link)->next;
    *link = import->next;
    free(import);
}

static struct mapping *find_mapping(CUcontext context, const void *handle) {
    struct mapping *mapping = all.mappings;
    while (mapping && (mapping->context != context ||
                       memcmp(&mapping->handle, handle, sizeof mapping->handle) != 0))
        mapping = mapping->next;
    return mapping;
}

/* Returns the mapping in which an open block begins at `start`, one in this context if there is
 * one; NULL: no such block is open. */
static struct mapping *find_mapping_of_block(CUcontext context, CUdeviceptr start) {
    struct mapping *found = NULL;
    for (struct mapping *mapping = all.mappings; mapping; mapping = mapping->next)
        if (import_at(mapping, start) && (!found || mapping->context == context))
            found = mapping;
    return found;
}

static void forget_mapping(struct mapping *mapping) {
    struct mapping **link = &all.mappings;
    while (*link != mapping)
        link = &(*link)->next;
    *link = mapping->next;
    while (mapping->imports)
        remove_import(mapping, mapping->imports);
    free(mapping);
}

/* Removes mappings of other memory from the list whose addresses overlap those of a new mapping.
 * They must have ended without a call that this library saw, since the driver has given their
 * addresses out again. */
static void forget_overlaps(const CUipcMemHandle *handle, CUdeviceptr base, uint64_t size) {
    for (struct mapping *mapping = all.mappings, *next; mapping; mapping = next) {
        next = mapping->next;
        bool overlaps = base - mapping->base < mapping->size || mapping->base - base < size;
        bool same = mapping->base == base && memcmp(&mapping->handle, handle, sizeof *handle) == 0;
        if (overlaps && !same)
            forget_mapping(mapping);
    }
}

struct opening {
    const struct bfc_driver *driver;
    CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned);
    CUcontext context;
    unsigned flags;
    uint64_t table, generation;
    struct bfc_row row;
    /* identifies the mapping: the driver's handle of the region; for pages, the block's token */
    CUipcMemHandle region;
};

static bool is_same_block(const struct import *import, const struct opening *opening) {
    return import->table == opening->table && import->generation == opening->generation;
}

/* Counts one more use of the opened block that begins at this offset of the mapping. If the
 * exporter has freed that block and allocated another at its place, the import describes the new
 * block from now on, and counts the uses of both. The caller holds the lock. */
static bool add_use(struct mapping *mapping, const struct opening *opening) {
    CUdeviceptr start = mapping->base + opening->row.offset;
    struct import *import = import_at(mapping, start);
    if (!import && !(import = add_import(mapping, start)))
        return false;
    if (!import->id || !is_same_block(import, opening)) {
        import->id = IMPORT_IDS | ++all.last_id;
        import->size = opening->row.size;
        import->table = opening->table;
        import->generation = opening->generation;
        import->sync_memops = false;
    }
    import->count++;
    mapping->uses++;
    bfc_store_release(&any, true);
    return true;
}

/* Opens a block without a driver call, in memory that is mapped already. False: the caller must
 * call the driver. Either the memory is not mapped, or the host has no memory, or the block lies in
 * a region and is open already, so that the driver must decide whether it may be opened twice. */
static bool use_mapping(const struct opening *opening, CUdeviceptr *pointer) {
    bool used = false;
    pthread_mutex_lock(&all.lock);
    struct mapping *mapping = find_mapping(opening->context, &opening->region);
    if (mapping) {
        CUdeviceptr start = mapping->base + opening->row.offset;
        const struct import *open = import_at(mapping, start);
        used = (mapping->has_pages || !open || !is_same_block(open, opening)) &&
               add_use(mapping, opening);
        if (used)
            *pointer = start;
    }
    pthread_mutex_unlock(&all.lock);
    return used;
}

/* Adds the mapping of a newly opened block to the list. NULL: the host has no memory. The caller
 * holds the lock. */
static struct mapping *make_mapping(const struct opening *opening, CUdeviceptr base,
                                    uint64_t size) {
    forget_overlaps(&opening->region, base, size);
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return NULL;
    *mapping = (struct mapping){.handle = opening->region,
                                .has_pages = opening->row.pages != 0,
                                .context = opening->context,
                                .base = base,
                                .size = size,
                                .next = all.mappings};
    all.mappings = mapping;
    return mapping;
}

/*
 * Records that memory was mapped at `base`, and sets `pointer` to the block's address in it. If
 * another thread has meanwhile mapped the same pages, `pointer` is set to the block's address in
 * that mapping. For a region each opening is counted, because the driver counts them too. False:
 * the host has no memory.
 */
static bool note_mapping(const struct opening *opening, CUdeviceptr base, uint64_t size,
                         CUdeviceptr *pointer) {
    pthread_mutex_lock(&all.lock);
    struct mapping *mapping = find_mapping(opening->context, &opening->region);
    bool opens = !mapping || !mapping->has_pages;
    if (!mapping)
        mapping = make_mapping(opening, base, size);
    bool noted = mapping && add_use(mapping, opening);
    if (noted) {
        mapping->opens += opens;
        *pointer = mapping->base + opening->row.offset;
    } else if (mapping && mapping->uses == 0) {
        forget_mapping(mapping);
    }
    pthread_mutex_unlock(&all.lock);
    return noted;
}

/* Returns how many bytes the driver has mapped at `base`; 0 if they do not hold the whole block. */
static uint64_t mapped_size(const struct opening *opening, CUdeviceptr base) {
    const struct bfc_driver *driver = opening->driver;
    const struct bfc_row *row = &opening->row;
    CUdeviceptr start = base;
    size_t size = row->region_size;
    if (driver->cuMemGetAddressRange_v2 &&
        driver->cuMemGetAddressRange_v2(&start, &size, base) == CUDA_SUCCESS)
        size -= base - start;
    bool holds = row->offset < size && row->size <= size - row->offset;
    return holds ? size : 0;
}

static CUresult note_opened(const struct opening *opening, CUdeviceptr base, CUdeviceptr *pointer) {
    uint64_t size = mapped_size(opening, base);
    if (size == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = bfc_share_peer_opened(opening->driver, opening->context, base);
    if (result != CUDA_SUCCESS)
        return result;
    return note_mapping(opening, base, size, pointer) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult map_region(const struct opening *opening, CUdeviceptr *pointer) {
    CUdeviceptr base = 0;
    CUresult result = opening->real(&base, opening->region, opening->flags);
    if (result == CUDA_ERROR_ALREADY_MAPPED && use_mapping(opening, pointer))
        return CUDA_SUCCESS; /* another thread has opened the region meanwhile */
    if (result != CUDA_SUCCESS)
        return result;
    result = note_opened(opening, base, pointer);
    if (result != CUDA_SUCCESS)
        opening->driver->cuIpcCloseMemHandle(base);
    return result;
}

static CUresult map_pages(const struct bfc_token *token, const struct opening *opening,
                          CUdeviceptr *pointer) {
    struct bfc_page_import import;
    CUresult result = bfc_page_import(opening->driver, token, &opening->row, &import);
    if (result != CUDA_SUCCESS)
        return result;
    bool noted = note_mapping(opening, import.base, import.bytes, pointer);
    if (!noted || *pointer != import.base + opening->row.offset)
        bfc_page_import_drop(opening->driver, &import);
    return noted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Opens a block that lies in pages. Returns the errors that the driver documents for
 * cuIpcOpenMemHandle, for instance if a process opens a block that it has itself exported. While a
 * capture forbids opening, makes the driver's own call, so that the program gets the driver's
 * error. */
static CUresult open_pages(const struct bfc_token *token, const CUipcMemHandle *handle,
                           struct opening *opening, CUdeviceptr *pointer) {
    memcpy(&opening->region, token, sizeof *token);
    if (opening->flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (!opening->context || bfc_token_table_is_own(token))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (bfc_capture_state(opening->driver) == BFC_CAPTURE_BARRED)
        return opening->real(pointer, *handle, opening->flags);
    if (use_mapping(opening, pointer))
        return CUDA_SUCCESS;
    return map_pages(token, opening, pointer);
}

static void report_refusal(const struct bfc_token *token, enum bfc_table_answer answer) {
    static const char *const reasons[] = {
        [BFC_TABLE_MISSING] = "that process has ended, is another user's, or has a /dev/shm of its "
                              "own (a container's, which can be shared)",
        [BFC_TABLE_UNSAFE] = "its table in /dev/shm is not this user's alone",
        [BFC_TABLE_STALE] = "its memory was freed there",
    };
    if (answer == BFC_TABLE_DAMAGED)
        bfc_log(BFC_LOG_ERROR, "cuIpcOpenMemHandle: a token is damaged");
    else
        bfc_log(BFC_LOG_ERROR, "cuIpcOpenMemHandle: a token of process %d cannot be opened: %s",
                token->pid, reasons[answer]);
}

CUresult bfc_import_open(const struct bfc_driver *driver, CUdeviceptr *pointer,
                         CUipcMemHandle handle, unsigned flags,
                         CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned)) {
    struct opening opening = {.driver = driver, .real = real, .flags = flags};
    struct bfc_token token;
    if (!bfc_token_claimed(&handle) || !pointer || !driver->cuIpcCloseMemHandle || !bfc_process())
        return real(pointer, handle, flags);
    memcpy(&token, &handle, sizeof token);
    int before = errno;
    enum bfc_table_answer answer = bfc_token_table_read(&token, &opening.row);
    errno = before;
    if (answer != BFC_TABLE_FOUND) {
        report_refusal(&token, answer);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    memcpy(&opening.region, opening.row.handle, sizeof opening.region);
    opening.table = token.table;
    opening.generation = token.generation;
    CUresult result = driver->cuCtxGetCurrent ? driver->cuCtxGetCurrent(&opening.context)
                                              : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS)
        return result;
    bfc_contexts_review(driver);
    if (opening.row.pages)
        return open_pages(&token, &handle, &opening, pointer);
    if (flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS && use_mapping(&opening, pointer))
        return CUDA_SUCCESS;
    return map_region(&opening, pointer);
}

/* What closing a block has removed from the lists of mappings and imports. If the driver fails to
 * close the block, it is listed again from this. */
struct closing {
    /* a copy of the block's import, with a count of 1 for the use that this close ends */
    struct import import;
    struct mapping mapping;
    /* whether the driver must close the mapping once; false: after this close the mapping still has
     * a use for each time that the driver opened it */
    bool closes;
};

/* Removes one use of an opened block; after its last use, the block; and after its last block, the
 * mapping. The caller holds the lock. */
static void take_use(struct mapping *mapping, struct import *import, struct closing *closing) {
    closing->import = *import;
    closing->import.count = 1;
    closing->closes = mapping->opens == mapping->uses;
    if (--import->count == 0)
        remove_import(mapping, import);
    mapping->uses--;
    mapping->opens -= closing->closes;
    closing->mapping = *mapping;
    if (mapping->uses == 0)
        forget_mapping(mapping);
}

/* Removes one use of the opened block that begins at `pointer`. False: no opened block begins
 * there. */
static bool take_import(CUcontext context, CUdeviceptr pointer, struct closing *closing) {
    pthread_mutex_lock(&all.lock);
    struct mapping *mapping = find_mapping_of_block(context, pointer);
    if (mapping)
        take_use(mapping, import_at(mapping, pointer), closing);
    pthread_mutex_unlock(&all.lock);
    return mapping;
}

/* Lists a use of a block again because the driver failed to close the mapping. If the host has no
 * memory for that, the use stays removed. */
static void put_back(const struct closing *closing) {
    const struct mapping *mapping = &closing->mapping;
    const struct import *import = &closing->import;
    struct opening opening = {.context = mapping->context,
                              .region = mapping->handle,
                              .table = import->table,
                              .generation = import->generation};
    opening.row.pages = mapping->has_pages;
    opening.row.offset = import->start - mapping->base;
    opening.row.size = import->size;
    CUdeviceptr pointer;
    note_mapping(&opening, mapping->base, mapping->size, &pointer);
}

/* Has the driver close one opening of a region, or unmaps pages after their last use. If a capture
 * forbids unmapping them, the driver is asked to close an address where nothing is mapped, so that
 * the program gets the driver's error. */
static CUresult unmap_mapping(const struct bfc_driver *driver, const struct mapping *mapping) {
    struct bfc_page_import import = {.base = mapping->base, .bytes = mapping->size};
    if (!mapping->has_pages)
        return driver->cuIpcCloseMemHandle(mapping->base);
    if (bfc_capture_state(driver) == BFC_CAPTURE_BARRED)
        return driver->cuIpcCloseMemHandle(BFC_NOWHERE);
    return bfc_page_import_close(driver, &import, mapping->context);
}

CUresult bfc_import_close(const struct bfc_driver *driver, CUdeviceptr pointer) {
    struct closing closing;
    struct bfc_pointer found;
    CUcontext context = NULL;
    if (!imports_exist() || (driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS && !context))
        return driver->cuIpcCloseMemHandle(pointer);
    if (!take_import(context, pointer, &closing))
        return driver->cuIpcCloseMemHandle(bfc_imports_find(pointer, &found) ? BFC_NOWHERE
                                                                             : pointer);
    CUresult result = closing.closes ? unmap_mapping(driver, &closing.mapping) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        put_back(&closing);
    return result;
}

/* Describes in `found` what lies at the address if the mapping contains it; false: the mapping does
 * not. */
static bool look_into(const struct mapping *mapping, CUdeviceptr address,
                      struct bfc_pointer *found) {
    if (address - mapping->base >= mapping->size)
        return false;
    const struct import *import = mapping->imports;
    while (import && address - import->start >= import->size)
        import = import->next;
    found->kind = import ? BFC_POINTER_IMPORTED : BFC_POINTER_GONE;
    if (import) {
        found->start = import->start;
        found->size = import->size;
        found->id = import->id;
        found->of_pages = mapping->has_pages ? mapping->context : NULL;
    }
    return true;
}

bool bfc_imports_find(CUdeviceptr address, struct bfc_pointer *found) {
    bool ours = false;
    if (!imports_exist())
        return false;
    pthread_mutex_lock(&all.lock);
    for (const struct mapping *mapping = all.mappings;
         mapping && found->kind != BFC_POINTER_IMPORTED; mapping = mapping->next)
        ours |= look_into(mapping, address, found);
    pthread_mutex_unlock(&all.lock);
    return ours;
}

bool bfc_import_sync_memops(uint64_t id) {
    pthread_mutex_lock(&all.lock);
    const struct import *import = import_of_id(id);
    bool on = import && import->sync_memops;
    pthread_mutex_unlock(&all.lock);
    return on;
}

void bfc_import_set_sync_memops(uint64_t id, bool on) {
    pthread_mutex_lock(&all.lock);
    struct import *import = import_of_id(id);
    if (import)
        import->sync_memops = on;
    pthread_mutex_unlock(&all.lock);
}

/* Mappings of pages stay in the list, without a context, until bfc_imports_collect unmaps them. */
void bfc_imports_context_ended(CUcontext context) {
    if (!imports_exist())
        return;
    pthread_mutex_lock(&all.lock);
    for (struct mapping *mapping = all.mappings, *next; mapping; mapping = next) {
        next = mapping->next;
        if (mapping->context != context)
            continue;
        mapping->context = NULL;
        if (!mapping->has_pages)
            forget_mapping(mapping);
    }
    pthread_mutex_unlock(&all.lock);
}

/* Removes one mapping without a context from the list, and copies it to `forgotten`; false: there
 * is none. */
static bool forget_one(struct mapping *forgotten) {
    pthread_mutex_lock(&all.lock);
    struct mapping *mapping = all.mappings;
    while (mapping && mapping->context)
        mapping = mapping->next;
    if (mapping) {
        *forgotten = *mapping;
        forget_mapping(mapping);
    }
    pthread_mutex_unlock(&all.lock);
    return mapping;
}

void bfc_imports_collect(const struct bfc_driver *driver) {
    struct mapping mapping;
    while (imports_exist() && forget_one(&mapping))
        bfc_page_import_drop(
            driver, &(struct bfc_page_import){.base = mapping.base, .bytes = mapping.size});
}

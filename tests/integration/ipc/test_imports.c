/* Opening and closing tokens over a made-up driver: old drivers, refusals, lies. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/context/contexts.h"
#include "interpose/features/share/page_imports.h"
#include "interpose/features/share/share.h"
#include "interpose/features/share/token_table.h"
#include "interpose/reuse/sharing.h"

#define BASE ((CUdeviceptr)0x700000000)
enum { REGION = 1 << 20, LAZY = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS };

/* ---- what lies beside imports.c in the library ---- */

static struct bfc_process process = {.alive = true, .active = true};
struct bfc_process *bfc_process_made = &process;

const struct bfc_process *bfc_process(void) {
    return &process;
}

void bfc_log(int level, const char *format, ...) {
    (void)level;
    (void)format;
}

CUresult bfc_share_peer_opened(const struct bfc_driver *driver, CUcontext accessor,
                               CUdeviceptr mapped) {
    (void)driver;
    (void)accessor;
    (void)mapped;
    return CUDA_SUCCESS;
}

unsigned bfc_captures_under_way;
static enum bfc_capture_state capture_state = BFC_CAPTURE_BARRED;

enum bfc_capture_state bfc_capture_ask(const struct bfc_driver *driver) {
    (void)driver;
    return capture_state;
}

const struct bfc_driver *bfc_driver_found;

const struct bfc_driver *bfc_driver_find(void) {
    return NULL;
}

static CUcontext ended; /* a context that has ended by a call that no hook saw */

void bfc_contexts_review(const struct bfc_driver *driver) {
    (void)driver;
    if (ended)
        bfc_imports_context_ended(ended);
    ended = NULL;
}

/* Pages, at another address with each import. */
static struct {
    unsigned mapped, ever;
    CUresult refusal;
} pages;

CUresult bfc_page_import(const struct bfc_driver *driver, const struct bfc_token *token,
                         const struct bfc_row *row, struct bfc_page_import *import) {
    (void)driver;
    (void)token;
    if (pages.refusal != CUDA_SUCCESS)
        return pages.refusal;
    *import = (struct bfc_page_import){BASE + ((CUdeviceptr)++pages.ever << 32), row->region_size};
    pages.mapped++;
    return CUDA_SUCCESS;
}

CUresult bfc_page_import_close(const struct bfc_driver *driver,
                               const struct bfc_page_import *import, CUcontext context) {
    cr_assert_eq(import->bytes, REGION);
    cr_assert_not_null(context);
    if (pages.refusal == CUDA_SUCCESS)
        bfc_page_import_drop(driver, import);
    return pages.refusal;
}

void bfc_page_import_drop(const struct bfc_driver *driver, const struct bfc_page_import *import) {
    (void)driver;
    cr_assert_gt(import->base, BASE);
    pages.mapped--;
}

/* ---- the driver: one region, opened some times ---- */

static struct {
    unsigned opened, calls;
    bool opens_once; /* as drivers before CUDA 11 do */
    CUresult refusal;
    size_t size;
} device;

static CUresult fake_open(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags) {
    device.calls++;
    if (device.refusal != CUDA_SUCCESS)
        return device.refusal;
    if (flags != LAZY || !strstr(handle.reserved, "region"))
        return CUDA_ERROR_INVALID_VALUE;
    if (device.opens_once && device.opened > 0)
        return CUDA_ERROR_ALREADY_MAPPED;
    device.opened++;
    *pointer = BASE;
    return CUDA_SUCCESS;
}

static CUresult fake_close(CUdeviceptr pointer) {
    device.calls++;
    if (device.refusal != CUDA_SUCCESS)
        return device.refusal;
    if (pointer != BASE || device.opened == 0)
        return CUDA_ERROR_INVALID_VALUE;
    device.opened--;
    return CUDA_SUCCESS;
}

static CUresult fake_range(CUdeviceptr *start, size_t *size, CUdeviceptr pointer) {
    (void)pointer;
    *start = BASE;
    *size = device.size;
    return CUDA_SUCCESS;
}

static CUcontext current = (CUcontext)0x1000;

static CUresult fake_current(CUcontext *context) {
    *context = current;
    return CUDA_SUCCESS;
}

static const struct bfc_driver driver = {
    .cuIpcOpenMemHandle_v2 = fake_open,
    .cuIpcCloseMemHandle = fake_close,
    .cuMemGetAddressRange_v2 = fake_range,
    .cuCtxGetCurrent = fake_current,
};

/* ---- */

static CUipcMemHandle token_of(const char *region, uint64_t offset, uint64_t size,
                               uint64_t region_size) {
    static uint64_t generation;
    struct bfc_row row = {.offset = offset, .size = size, .region_size = region_size};
    strcpy((char *)row.handle, region);
    struct bfc_token token = {.generation = ++generation};
    CUipcMemHandle handle;
    cr_assert(bfc_token_table_publish(&token, &row));
    memcpy(&handle, &token, sizeof handle);
    return handle;
}

static CUipcMemHandle token_at(uint64_t offset, uint64_t size, uint64_t region_size) {
    return token_of("region", offset, size, region_size);
}

static CUresult open_token(CUipcMemHandle handle, CUdeviceptr *pointer) {
    return bfc_import_open(&driver, pointer, handle, LAZY, fake_open);
}

static CUdeviceptr opened(CUipcMemHandle handle) {
    CUdeviceptr pointer = 0;
    cr_assert_eq(open_token(handle, &pointer), CUDA_SUCCESS);
    return pointer;
}

static CUresult closed(CUdeviceptr pointer) {
    return bfc_import_close(&driver, pointer);
}

static enum bfc_pointer_kind find(CUdeviceptr address, struct bfc_pointer *found) {
    *found = (struct bfc_pointer){.kind = BFC_POINTER_FOREIGN};
    cr_assert_eq(bfc_imports_find(address, found), found->kind != BFC_POINTER_FOREIGN);
    return found->kind;
}

static void begin(void) {
    device.size = REGION;
}

TestSuite(imports, .init = begin);

Test(imports, two_blocks_of_a_region_share_its_mapping) {
    CUdeviceptr first = opened(token_at(512, 1000, REGION));
    CUdeviceptr second = opened(token_at(4096, 100, REGION));
    cr_assert_eq(first, BASE + 512);
    cr_assert_eq(second, BASE + 4096);
    cr_assert_eq(device.calls, 1);
    cr_assert_eq(closed(first), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 1);
    cr_assert_eq(closed(second), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 0);
    cr_assert_neq(closed(second), CUDA_SUCCESS);
}

Test(imports, a_block_opened_twice_is_for_the_driver_to_answer) {
    CUipcMemHandle token = token_at(512, 1000, REGION);
    CUdeviceptr first = opened(token), again = opened(token);
    cr_assert_eq(first, again);
    cr_assert_eq(device.opened, 2);
    cr_assert_eq(closed(first), CUDA_SUCCESS);
    cr_assert_eq(closed(first), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 0);
}

Test(imports, an_old_driver_opens_a_region_once) {
    CUipcMemHandle token = token_at(512, 1000, REGION);
    CUdeviceptr pointer = 0, first = opened(token);
    device.opens_once = true;
    CUdeviceptr second = opened(token_at(4096, 100, REGION));
    cr_assert_eq(open_token(token, &pointer), CUDA_ERROR_ALREADY_MAPPED);
    cr_assert_eq(pointer, 0);
    cr_assert_eq(closed(second), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 1);
    cr_assert_eq(closed(first), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 0);
}

Test(imports, a_region_smaller_than_its_table_says_is_closed_again) {
    CUdeviceptr pointer = 0;
    device.size = REGION / 2;
    cr_assert_eq(open_token(token_at(REGION / 2, 1, REGION), &pointer), CUDA_ERROR_INVALID_HANDLE);
    cr_assert_eq(open_token(token_at(REGION / 2 - 512, 513, REGION), &pointer),
                 CUDA_ERROR_INVALID_HANDLE);
    cr_assert_eq(pointer, 0);
    cr_assert_eq(device.opened, 0);
    cr_assert_eq(opened(token_at(REGION / 2 - 512, 512, REGION)), BASE + REGION / 2 - 512);
}

Test(imports, a_refused_open_leaves_nothing) {
    CUdeviceptr pointer = 0;
    struct bfc_pointer imported;
    device.refusal = CUDA_ERROR_MAP_FAILED;
    cr_assert_eq(open_token(token_at(512, 1000, REGION), &pointer), CUDA_ERROR_MAP_FAILED);
    cr_assert_eq(pointer, 0);
    cr_assert_eq(find(BASE + 512, &imported), BFC_POINTER_FOREIGN);
}

Test(imports, a_refused_close_leaves_it_open) {
    struct bfc_pointer before, imported;
    CUdeviceptr pointer = opened(token_at(512, 1000, REGION));
    find(pointer, &before);
    device.refusal = CUDA_ERROR_ILLEGAL_ADDRESS;
    cr_assert_eq(closed(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert_eq(find(pointer, &imported), BFC_POINTER_IMPORTED);
    cr_assert_eq(imported.size, 1000);
    device.refusal = CUDA_SUCCESS;
    cr_assert_eq(closed(pointer), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 0);
    cr_assert_eq(find(pointer, &imported), BFC_POINTER_FOREIGN);
}

Test(imports, only_what_was_opened_is_found_and_closed) {
    struct bfc_pointer first, second, other;
    CUdeviceptr a = opened(token_at(512, 1000, REGION)), b = opened(token_at(2048, 10, REGION));
    cr_assert_eq(find(a + 999, &first), BFC_POINTER_IMPORTED);
    cr_assert_eq(find(b, &second), BFC_POINTER_IMPORTED);
    cr_assert_neq(first.id, second.id);
    cr_assert_eq(first.start, a);
    cr_assert_eq(find(a + 1000, &other), BFC_POINTER_GONE);
    cr_assert_eq(find(BASE, &other), BFC_POINTER_GONE);
    cr_assert_eq(find(BASE + REGION, &other), BFC_POINTER_FOREIGN);
    cr_assert_neq(closed(BASE), CUDA_SUCCESS);
    cr_assert_neq(closed(a + 1), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 1);
}

Test(imports, go_with_their_context) {
    struct bfc_pointer imported;
    CUdeviceptr pointer = opened(token_at(512, 1000, REGION));
    bfc_imports_context_ended((CUcontext)0x2000);
    cr_assert_eq(find(pointer, &imported), BFC_POINTER_IMPORTED);
    bfc_imports_context_ended(current);
    cr_assert_eq(find(pointer, &imported), BFC_POINTER_FOREIGN);
}

Test(imports, what_a_context_took_along_unseen_gives_way) {
    struct bfc_pointer imported;
    opened(token_at(512, 1000, REGION));
    device.opened = 0;
    ended = current;
    current = (CUcontext)0x2000;
    CUdeviceptr pointer = opened(token_at(256, 1024, REGION));
    cr_assert_eq(find(BASE + 600, &imported), BFC_POINTER_IMPORTED);
    cr_assert_eq(imported.start, pointer);
    cr_assert_eq(closed(pointer), CUDA_SUCCESS);
    cr_assert_eq(find(BASE + 600, &imported), BFC_POINTER_FOREIGN);
}

/* The driver may map the region at one address in both. */
Test(imports, two_contexts_open_a_region_each_for_itself) {
    struct bfc_pointer found;
    CUipcMemHandle token = token_at(512, 1000, REGION);
    CUdeviceptr both = opened(token), other = opened(token_at(4096, 100, REGION));
    current = (CUcontext)0x2000;
    cr_assert_eq(opened(token), both);
    cr_assert_eq(device.opened, 2);
    cr_assert_eq(find(other, &found), BFC_POINTER_IMPORTED);
    cr_assert_eq(closed(both), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 1);
    cr_assert_eq(find(both, &found), BFC_POINTER_IMPORTED);
    current = (CUcontext)0x1000;
    cr_assert_eq(closed(other), CUDA_SUCCESS);
    cr_assert_eq(closed(both), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 0);
    cr_assert_eq(find(both, &found), BFC_POINTER_FOREIGN);
}

Test(imports, what_lies_where_another_region_was_gives_way) {
    struct bfc_pointer found;
    opened(token_at(512, 1000, REGION));
    device.size = REGION / 2;
    CUipcMemHandle token = token_of("other region", 4096, 100, REGION / 2);
    CUdeviceptr pointer = opened(token);
    cr_assert_eq(find(pointer, &found), BFC_POINTER_IMPORTED);
    cr_assert_eq(find(BASE + 512, &found), BFC_POINTER_GONE);
}

Test(imports, sync_memops_is_a_blocks_own) {
    struct bfc_pointer a, b;
    find(opened(token_at(512, 1000, REGION)), &a);
    find(opened(token_at(2048, 10, REGION)), &b);
    bfc_import_set_sync_memops(a.id, true);
    cr_assert(bfc_import_sync_memops(a.id));
    cr_assert_not(bfc_import_sync_memops(b.id));
}

Test(imports, what_is_no_token_is_the_drivers) {
    CUipcMemHandle handle = {.reserved = "region"};
    CUdeviceptr pointer = 0;
    cr_assert_eq(open_token(handle, &pointer), CUDA_SUCCESS);
    cr_assert_eq(pointer, BASE);
    cr_assert_eq(closed(pointer), CUDA_SUCCESS);
    cr_assert_eq(device.opened, 0);
    cr_assert_eq(bfc_import_open(&driver, NULL, token_at(0, 1, REGION), LAZY, fake_open),
                 CUDA_ERROR_INVALID_VALUE);
}

/* ---- pages ---- */

static CUipcMemHandle token_of_pages(uint64_t offset) {
    struct bfc_row row = {.offset = offset, .size = 100, .region_size = REGION, .pages = 2};
    struct bfc_token token = {.generation = 7 + offset};
    CUipcMemHandle handle;
    cr_assert(bfc_token_table_publish(&token, &row));
    memcpy(&handle, &token, sizeof handle);
    return handle;
}

/* By another process, which lives as long as the test. */
static CUipcMemHandle foreign_token(uint64_t offset) {
    CUipcMemHandle handle = {0};
    int told[2], held[2];
    cr_assert_eq(pipe(told), 0);
    cr_assert_eq(pipe(held), 0);
    if (fork() == 0) {
        char none;
        handle = token_of_pages(offset);
        close(held[1]);
        if (write(told[1], &handle, sizeof handle) != sizeof handle)
            _exit(1);
        /* Of an exporter that has ended any job may remove the table. */
        _exit(read(held[0], &none, 1) != 0);
    }
    cr_assert_eq(read(told[0], &handle, sizeof handle), sizeof handle);
    return handle;
}

Test(imports, pages_are_mapped_once_and_counted) {
    CUipcMemHandle token = foreign_token(512);
    CUdeviceptr first = opened(token), again = opened(token);
    cr_assert_eq(first, again);
    cr_assert_eq(pages.ever, 1);
    cr_assert_eq(closed(first), CUDA_SUCCESS);
    cr_assert_eq(pages.mapped, 1);
    cr_assert_eq(closed(first), CUDA_SUCCESS);
    cr_assert_eq(pages.mapped, 0);
    cr_assert_neq(closed(first), CUDA_SUCCESS);
    cr_assert_eq(opened(token), first + (UINT64_C(1) << 32));
}

Test(imports, pages_of_two_blocks_are_mapped_apart) {
    CUdeviceptr first = opened(foreign_token(512)), second = opened(foreign_token(1024));
    cr_assert_eq(pages.mapped, 2);
    cr_assert_eq(closed(first), CUDA_SUCCESS);
    cr_assert_eq(pages.mapped, 1);
    cr_assert_eq(closed(second), CUDA_SUCCESS);
    cr_assert_eq(pages.mapped, 0);
}

Test(imports, pages_are_told_by_the_context_that_opened_them) {
    struct bfc_pointer imported;
    CUdeviceptr pointer = opened(foreign_token(512));
    cr_assert_eq(find(pointer, &imported), BFC_POINTER_IMPORTED);
    cr_assert_eq(imported.of_pages, current);
    cr_assert_eq(imported.size, 100);
    opened(token_at(512, 1000, REGION));
    cr_assert_eq(find(BASE + 512, &imported), BFC_POINTER_IMPORTED);
    cr_assert_null(imported.of_pages);
}

Test(imports, pages_go_with_their_context) {
    CUipcMemHandle token = foreign_token(512);
    CUdeviceptr pointer = opened(token);
    opened(token);
    bfc_imports_context_ended(current);
    bfc_imports_collect(&driver);
    cr_assert_eq(pages.mapped, 0);
    cr_assert_neq(closed(pointer), CUDA_SUCCESS);
}

Test(imports, pages_that_do_not_go_stay_open) {
    CUdeviceptr pointer = opened(foreign_token(512));
    pages.refusal = CUDA_ERROR_ILLEGAL_ADDRESS;
    cr_assert_eq(closed(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
    pages.refusal = CUDA_SUCCESS;
    cr_assert_eq(closed(pointer), CUDA_SUCCESS);
    cr_assert_eq(pages.mapped, 0);
}

Test(imports, pages_are_refused_as_the_driver_refuses) {
    CUdeviceptr pointer = 0;
    CUipcMemHandle token = foreign_token(512);
    cr_assert_eq(bfc_import_open(&driver, &pointer, token, 0, fake_open), CUDA_ERROR_INVALID_VALUE);
    pages.refusal = CUDA_ERROR_OUT_OF_MEMORY;
    cr_assert_eq(open_token(token, &pointer), CUDA_ERROR_OUT_OF_MEMORY);
    pages.refusal = CUDA_SUCCESS;
    bfc_captures_under_way = 1;
    device.refusal = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    cr_assert_eq(open_token(token, &pointer), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    cr_assert_eq(pointer, 0);
    cr_assert_eq(pages.ever, 0);
}

Test(imports, pages_are_not_opened_by_their_exporter) {
    CUdeviceptr pointer = 0;
    cr_assert_eq(open_token(token_of_pages(512), &pointer), CUDA_ERROR_INVALID_CONTEXT);
    cr_assert_eq(pages.ever, 0);
}

Test(imports, pages_are_not_closed_where_a_capture_bars_it) {
    CUdeviceptr pointer = opened(foreign_token(512));
    bfc_captures_under_way = 1;
    device.refusal = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    cr_assert_eq(closed(pointer), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    cr_assert_eq(pages.mapped, 1);
    bfc_captures_under_way = 0;
    cr_assert_eq(closed(pointer), CUDA_SUCCESS);
}

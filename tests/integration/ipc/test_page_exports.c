/*
 * Exports of pages over a made-up device: what importers are sent is always a page of the block,
 * also if the block is freed while they are being answered.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "interpose/context/capture.h"
#include "interpose/features/share/page_exports.h"
#include "interpose/host/background.h"
#include "tests/unit/pool/fake_pages.h"

#define UNIT (UINT64_C(2) << 20)

/* ---- what lies beside page_exports.c in the library ---- */

static unsigned kept;
static bool context_ended, process_ends;

void bfc_arena_keep(struct bfc_arena *arena) {
    (void)arena;
    kept++;
}

void bfc_arena_drop(struct bfc_arena *arena) {
    (void)arena;
    kept--;
}

bool bfc_arena_enter(struct bfc_arena *arena) {
    (void)arena;
    return !context_ended;
}

void bfc_arena_leave(struct bfc_arena *arena) {
    (void)arena;
}

bool bfc_background_begin(void) {
    return !process_ends;
}

void bfc_background_end(void) {
}

CUstreamCaptureMode bfc_capture_relax_now(const struct bfc_driver *driver) {
    (void)driver;
    return CU_STREAM_CAPTURE_MODE_RELAXED;
}

void bfc_capture_restore_now(const struct bfc_driver *driver, CUstreamCaptureMode mode) {
    (void)driver;
    (void)mode;
}

/* ---- the device, and one block in a pool ---- */

static struct fake_pages fake;
static struct bfc_arena arena;
static struct bfc_block_info block;
static struct bfc_token token;
static struct {
    unsigned exported, refuse_at;
    void (*meanwhile)(void);
    bfc_page pages[BFC_LOCAL_FILES * 2];
} device;

static CUresult fake_export(void *file, CUmemGenericAllocationHandle page,
                            CUmemAllocationHandleType type, bfc_cuda_flags flags) {
    cr_assert(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && flags == 0);
    if (device.meanwhile)
        device.meanwhile();
    cr_assert(fake.pages[page].bytes && fake.pages[page].start, "an exported page is still there");
    device.pages[device.exported++] = page;
    if (device.exported == device.refuse_at)
        return CUDA_ERROR_OPERATING_SYSTEM;
    int opened = open("/dev/null", O_RDONLY);
    memcpy(file, &opened, sizeof opened);
    return CUDA_SUCCESS;
}

static const struct bfc_driver driver = {.cuMemExportToShareableHandle = fake_export};

static void begin(void) {
    fake_pages_init(&fake, UNIT, 128 * UNIT);
    struct bfc_pool_config config;
    struct bfc_upstream upstream = {.context = &fake, .pages = &fake.calls};
    bfc_pool_config_default(&config);
    config.page_most = UNIT;
    cr_assert_eq(bfc_pool_create(&arena.pool, &config, &upstream), BFC_OK);
}

static void allocate(uint64_t bytes) {
    cr_assert_eq(bfc_pool_allocate(arena.pool, bytes, 0, &block), BFC_OK);
    token = (struct bfc_token){.table = 5, .generation = block.id, .key = "a key of sixteen"};
    cr_assert(bfc_page_exports_add(&token, &arena, &block));
}

static struct bfc_page_request request_of(uint64_t first) {
    struct bfc_page_request request = {
        .table = token.table, .generation = token.generation, .nonce = 9, .first = first};
    bfc_page_request_seal(token.key, &request);
    return request;
}

static bool answer(uint64_t first, struct bfc_page_reply *reply) {
    int files[BFC_LOCAL_FILES], next = dup(0);
    close(next);
    struct bfc_page_request request = request_of(first);
    bool answered = bfc_page_exports_answer(&driver, &request, reply, files);
    for (uint64_t i = 0; answered && i < reply->count; i++) {
        cr_assert_eq(fcntl(files[i], F_GETFD), FD_CLOEXEC);
        close(files[i]);
    }
    int after = dup(0);
    close(after);
    cr_assert_eq(after, next, "a descriptor is left");
    cr_assert(!answered || bfc_page_reply_is_intact(token.key, &request, reply));
    return answered;
}

static void free_block(void) {
    cr_assert_eq(bfc_pool_free(arena.pool, block.start, BFC_NO_FENCE), BFC_OK);
    bfc_page_exports_end(&token);
}

static uint64_t pinned(void) {
    struct bfc_page_stats stats;
    cr_assert(bfc_pool_page_stats(arena.pool, &stats));
    return stats.pinned;
}

TestSuite(page_exports, .init = begin);

Test(page_exports, all_pages_come_in_their_order_and_each_once) {
    struct bfc_row row;
    struct bfc_page_reply reply;
    allocate(40 * UNIT + 512);
    cr_assert(bfc_page_exports_describe(&arena, &block, &row));
    uint64_t bytes = 0;
    for (uint64_t first = 0; first < row.pages; first += reply.count) {
        cr_assert(answer(first, &reply));
        cr_assert_gt(reply.count, 0);
        for (uint64_t i = 0; i < reply.count; i++)
            bytes += reply.bytes[i];
    }
    cr_assert_eq(device.exported, row.pages);
    cr_assert_eq(bytes, row.region_size);
    for (unsigned i = 1; i < device.exported; i++)
        cr_assert_eq(fake.pages[device.pages[i]].start,
                     fake.pages[device.pages[i - 1]].start + fake.pages[device.pages[i - 1]].bytes);
    cr_assert(answer(row.pages, &reply));
    cr_assert_eq(reply.count, 0);
}

Test(page_exports, pages_are_pinned_until_the_token_ends) {
    struct bfc_page_reply reply;
    allocate(3 * UNIT);
    cr_assert_geq(pinned(), 3 * UNIT);
    cr_assert_eq(kept, 1);
    free_block();
    cr_assert_eq(pinned(), 0);
    cr_assert_eq(kept, 0);
    cr_assert_not(answer(0, &reply));
    cr_assert_gt(bfc_pool_trim(arena.pool, UINT64_MAX), 0);
    bfc_page_exports_end(&token);
}

static void free_and_trim(void) {
    device.meanwhile = NULL;
    free_block();
    bfc_pool_trim(arena.pool, UINT64_MAX);
    cr_assert_geq(pinned(), 3 * UNIT, "what is being sent does not go");
}

Test(page_exports, a_block_freed_meanwhile_keeps_its_pages_and_is_not_sent) {
    struct bfc_page_reply reply;
    allocate(3 * UNIT);
    device.meanwhile = free_and_trim;
    cr_assert_not(answer(0, &reply));
    cr_assert_geq(device.exported, 1);
    cr_assert_eq(pinned(), 0);
    cr_assert_eq(kept, 0);
    cr_assert_geq(bfc_pool_trim(arena.pool, UINT64_MAX), 3 * UNIT);
}

Test(page_exports, who_does_not_know_the_key_gets_nothing) {
    struct bfc_page_reply reply;
    int files[BFC_LOCAL_FILES];
    allocate(UNIT);
    for (size_t bit = 0; bit < 8 * sizeof(struct bfc_page_request); bit++) {
        struct bfc_page_request request = request_of(0);
        ((uint8_t *)&request)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_assert_not(bfc_page_exports_answer(&driver, &request, &reply, files), "bit %zu", bit);
    }
    cr_assert_eq(device.exported, 0);
}

Test(page_exports, a_refused_export_leaves_nothing_and_is_said) {
    struct bfc_page_reply reply;
    allocate(4 * UNIT);
    device.refuse_at = 3;
    cr_assert(answer(0, &reply));
    cr_assert_eq(reply.count, 0);
    cr_assert_eq(reply.result, CUDA_ERROR_OPERATING_SYSTEM);
    free_block();
    cr_assert_eq(pinned(), 0);
}

Test(page_exports, nothing_is_exported_at_the_end_of_a_context_or_the_process) {
    struct bfc_page_reply reply;
    allocate(UNIT);
    context_ended = true;
    cr_assert_not(answer(0, &reply));
    context_ended = false;
    process_ends = true;
    cr_assert_not(answer(0, &reply));
    cr_assert_eq(device.exported, 0);
}

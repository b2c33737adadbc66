/*
 * Copies between pages and the store (interpose/features/sleep/copy_pages.c), over a driver whose
 * copies happen as late as they may: at the wait for their stream. Each chunk is under way while
 * the one before it is written or read, no buffer is used twice at once, and none is under way at
 * the end, whatever is refused.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "interpose/features/sleep/copy_pages.h"
#include "interpose/features/sleep/store.h"

#define MIB ((size_t)1 << 20)
#define CHUNK (4 * MIB)
#define BYTES (4 * CHUNK + 1000) /* five chunks */
#define DEVICE ((CUdeviceptr)BYTES)

static char device[BYTES], stored[BYTES], buffers[2][CHUNK];
static char said[512];
static struct {
    void *to;
    const void *from;
    size_t bytes;
} pending[2];
static int refused; /* the number of the wait that is refused, counted down; 0: none */

static void say(char what, size_t number) {
    size_t used = strlen(said);
    snprintf(said + used, sizeof said - used, "%c%zu ", what, number);
}

static CUresult begin(void *to, const void *from, size_t bytes, CUstream stream, size_t at) {
    int turn = (int)(uintptr_t)stream - 1;
    cr_assert_null(pending[turn].to, "a stream's buffer is used twice at once");
    pending[turn].to = to;
    pending[turn].from = from;
    pending[turn].bytes = bytes;
    say('c', at / CHUNK);
    return CUDA_SUCCESS;
}

static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return begin(to, device + (from - DEVICE), bytes, stream, from - DEVICE);
}

static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return begin(device + (to - DEVICE), from, bytes, stream, to - DEVICE);
}

static CUresult synchronize(CUstream stream) {
    int turn = (int)(uintptr_t)stream - 1;
    if (refused && --refused == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pending[turn].to)
        memcpy(pending[turn].to, pending[turn].from, pending[turn].bytes);
    pending[turn].to = NULL;
    return CUDA_SUCCESS;
}

int bfc_sleep_store_write(int file, uint64_t at, const void *bytes, size_t size) {
    (void)file;
    memcpy(stored + at, bytes, size);
    say('w', at / CHUNK);
    return 0;
}

int bfc_sleep_store_read(int file, uint64_t at, void *bytes, size_t size) {
    (void)file;
    memcpy(bytes, stored + at, size);
    say('r', at / CHUNK);
    return 0;
}

static const struct bfc_driver driver = {.cuMemcpyDtoHAsync_v2 = copy_out,
                                         .cuMemcpyHtoDAsync_v2 = copy_in,
                                         .cuStreamSynchronize = synchronize};
static const struct bfc_page_copier copier = {{buffers[0], buffers[1]}, {(CUstream)1, (CUstream)2}};

static bool always(void) {
    return true;
}

static CUresult out(void) {
    int error = 0;
    said[0] = '\0';
    CUresult result = bfc_copy_pages_out(&driver, &copier, DEVICE, BYTES, 0, 0, always, &error);
    cr_assert(!pending[0].to && !pending[1].to, "a copy is under way");
    return result;
}

static CUresult in(void) {
    int error = 0;
    said[0] = '\0';
    CUresult result = bfc_copy_pages_in(&driver, &copier, DEVICE, BYTES, 0, 0, always, &error);
    cr_assert(!pending[0].to && !pending[1].to, "a copy is under way");
    return result;
}

static void fill(char *bytes, unsigned seed) {
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)(seed = seed * 1103515245 + 12345);
}

Test(copies, out_a_chunk_is_under_way_while_the_one_before_is_written) {
    fill(device, 1);
    cr_assert_eq(out(), CUDA_SUCCESS);
    cr_assert_str_eq(said, "c0 c1 w0 c2 w1 c3 w2 c4 w3 w4 ");
    cr_assert_arr_eq(stored, device, BYTES);
}

Test(copies, in_a_chunk_is_under_way_while_the_next_is_read) {
    fill(stored, 2);
    cr_assert_eq(in(), CUDA_SUCCESS);
    cr_assert_str_eq(said, "r0 c0 r1 c1 r2 c2 r3 c3 r4 c4 ");
    cr_assert_arr_eq(stored, device, BYTES);
}

Test(copies, no_copy_is_under_way_whichever_wait_is_refused) {
    for (int number = 1; number < 12; number++) {
        refused = number;
        CUresult result = out();
        cr_assert(refused || result == CUDA_ERROR_OUT_OF_MEMORY);
        refused = number;
        result = in();
        cr_assert(refused || result == CUDA_ERROR_OUT_OF_MEMORY);
    }
    refused = 0;
}

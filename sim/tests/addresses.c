// Where device memory lies and what is in it: addresses never run out before memory does, 32-bit
// pointers with SIM_LOW, zeros with SIM_FRESH.
#include "sim/tests/check.h"

#include <cuda.h>
#include <string.h>

enum { PAGE = 2 << 20, PAGES_MOST = 4096 };

static size_t free_pages(void) {
    size_t now = 0, total = 0;
    DO(cuMemGetInfo_v2(&now, &total));
    return now / PAGE;
}

// Four pages of all that there is hold on to their places; then the rest is asked for in one piece.
static void free_memory_is_never_in_pieces(void) {
    static CUdeviceptr page[PAGES_MOST];
    CUdeviceptr rest = 0;
    size_t count = free_pages();
    CHECK(count >= 8 && count <= PAGES_MOST);
    for (size_t i = 0; i < count; i++) {
        DO(cuMemAlloc_v2(&page[i], PAGE));
    }
    for (size_t i = 0; i < count; i++) {
        if (i % (count / 4) != 0) {
            DO(cuMemFree_v2(page[i]));
            page[i] = 0;
        }
    }
    DO(cuMemAlloc_v2(&rest, free_pages() * PAGE));
    CHECK(free_pages() == 0);
    DO(cuMemFree_v2(rest));
    for (size_t i = 0; i < count; i++) {
        DO(cuMemFree_v2(page[i]));
    }
    CHECK(free_pages() == count);
}

// The entries of before CUDA 3.2.
static void pointers_of_32_bits(void) {
    unsigned pointer = 0, rows = 0, pitch = 0, start = 0, size = 0;
    char back[8] = "";
    DO(cuMemAlloc(&pointer, 3 * PAGE));
    DO(cuMemcpyHtoD(pointer, "abcdefg", 8));
    DO(cuMemsetD8(pointer + 1, 'x', 2));
    DO(cuMemcpyDtoH(back, pointer, 8));
    CHECK(strcmp(back, "axxdefg") == 0);
    DO(cuMemGetAddressRange(&start, &size, pointer + PAGE));
    CHECK(start == pointer && size == 3 * PAGE);
    DO(cuMemAllocPitch(&rows, &pitch, 100, 3, 4));
    CHECK(pitch == 512 && rows != 0);
    DO(cuMemFree(rows));
    DO(cuMemFree(pointer));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer));
}

static void fresh_memory_is_zero(void) {
    CUdeviceptr memory = 0, beside = 0;
    char back[1000];
    DO(cuMemAlloc_v2(&beside, sizeof back)); // keeps the page that both are cut from
    for (int i = 0; i < 2; i++) {
        DO(cuMemAlloc_v2(&memory, sizeof back));
        DO(cuMemcpyDtoH_v2(back, memory, sizeof back));
        CHECK(back[0] == 0 && memcmp(back, back + 1, sizeof back - 1) == 0);
        DO(cuMemsetD8_v2(memory, 'd', sizeof back));
        DO(cuMemFree_v2(memory));
    }
    DO(cuMemFree_v2(beside));
}

int main(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    free_memory_is_never_in_pieces();
    pointers_of_32_bits();
    fresh_memory_is_zero();
    return 0;
}

/*
 * dma-buf descriptors, as UCX asks for them: the allocation's pages, its start rounded down and its
 * end up to pages; and as NCCL does: as allocated. Ranges that are no allocation's, or not of whole
 * pages, are refused [D].
 */
#include <fcntl.h>

#include "tests/conformance/gpu.h"

static void ask(const char *what, CUdeviceptr start, size_t bytes) {
    int file = -1;
    say(what, (int)DRIVER(cuMemGetHandleForAddressRange)(&file, start, bytes,
                                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    if (file >= 0) {
        tell("a descriptor", fcntl(file, F_GETFD) >= 0);
        close(file);
    }
}

/* Not below 2 MiB, where the driver's own allocations need not start at a page: an H100's driver
 * (580) puts one of 1 MiB and 4 KiB beside smaller ones. */
static void ask_as_allocated(void) {
    static const size_t sizes[] = {2 * MIB, 2 * MIB + 4096, 5 * MIB + 65536, 3 * MIB + 512,
                                   20 * MIB};
    for (int i = 0; i < 5; i++) {
        void *small = new_block(700), *block = new_block(sizes[i]);
        printf("%zu bytes: ", sizes[i]);
        ask("as allocated", address(block), sizes[i]);
        if (i % 2)
            MUST(release(small));
    }
}

int main(void) {
    const size_t bytes = 4 * MIB, page = (size_t)sysconf(_SC_PAGESIZE);
    int supported = 0;
    use_device(0);
    MUST(DRIVER(cuDeviceGetAttribute)(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    if (!supported)
        skip("dma-buf");
    char *small = new_block(1000), *block = new_block(bytes), *after = new_block(bytes);
    CUdeviceptr start = address(block) & ~(CUdeviceptr)(page - 1);
    CUdeviceptr end = (address(block) + bytes + page - 1) & ~(CUdeviceptr)(page - 1);
    ask("its pages", start, end - start);
    ask("its first page", start, page);
    ask("its last page", end - page, page);
    ask("a page in the middle", start + 2 * MIB, page);
    ask("not from a page's start", start + 2 * MIB + 512, page);
    ask("not to a page's end", start, page + 512);
    ask("nothing", start, 0);
    ask("more than it", start, end - start + 64 * MIB);
    MUST(release(block));
    ask("freed", start + MIB, page);
    MUST(release(small));
    MUST(release(after));
    ask_as_allocated();
    return 0;
}

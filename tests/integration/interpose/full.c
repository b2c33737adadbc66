/*
 * Fills a device of 1 GiB, frees every second block, and asks for more than any gap: prints what
 * the program gets. Then twice again, as programs that try do.
 *
 * full [LOG [both]]: first makes LOG its standard error, or its standard output too.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/integration/interpose/program.h"

static void redirect(const char *path, int both) {
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    CHECK(dup2(log, 2) == 2 && (!both || dup2(log, 1) == 1) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    close(log);
}

int main(int argc, char **argv) {
    static CUdeviceptr blocks[64];
    const size_t block = (size_t)16 << 20;
    CUdeviceptr large = 0;
    int count = 0;
    if (argc > 1)
        redirect(argv[1], argc > 2);
    use_primary(0);
    while (count < 64 && cuMemAlloc_v2(&blocks[count], block) == CUDA_SUCCESS)
        count++;
    for (int i = 0; i < count; i += 2)
        CHECK(cuMemFree_v2(blocks[i]));
    for (int i = 0; i < 3; i++)
        printf("%d\n", (int)cuMemAlloc_v2(&large, 12 * block));
    return 0;
}

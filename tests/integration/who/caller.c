/*
 * Holds eight blocks of one call of the CUDA runtime, of which some make the pool grow; a line on
 * its standard input makes it allocate two more, in two calls of one function.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/integration/who/site.h"

void site_runtime(void);

SITE void site_runtime(void) {
    void *pointer;
    if (cudaMalloc(&pointer, 8 << 20) != cudaSuccess)
        exit(1);
}

static void wait_for_line(const char *said) {
    puts(said);
    fflush(stdout);
    if (getchar() == EOF)
        exit(0);
}

int main(void) {
    for (volatile int i = 0; i < 8; i++) /* not unrolled: one call */
        site_runtime();
    wait_for_line("ready");
    site_runtime();
    site_runtime();
    wait_for_line("more");
    return 0;
}

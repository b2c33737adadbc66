/* Frees at exit, in handlers made before and after the first use of CUDA and in a static
 * destructor: whatever the code, the program ends. */
#include "tests/conformance/gpu.h"

static void *blocks[3];

static void free_early(void) {
    printf("~ free in a handler made after CUDA: %d\n", release(blocks[0]));
}

static void free_late(void) {
    printf("~ free in a handler made before CUDA: %d\n", release(blocks[1]));
}

__attribute__((destructor)) static void free_last(void) {
    void *pointer = NULL;
    printf("~ free in a destructor: %d\n", release(blocks[2]));
    printf("~ malloc in a destructor: %d\n", allocate(&pointer, 100));
    puts("the destructor ran");
}

int main(void) {
    atexit(free_late);
    use_device(0);
    for (int i = 0; i < 3; i++)
        blocks[i] = new_block(1000);
    atexit(free_early);
    puts("the end of main");
    return 0;
}

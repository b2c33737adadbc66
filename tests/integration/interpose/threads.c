/*
 * Threads that allocate, stamp, pass blocks to each other, check the stamps and free.
 * Prints how many stamps were wrong.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/integration/interpose/program.h"

enum { THREADS = 32, ROUNDS = 200, SLOTS = 64 };

static _Atomic(CUdeviceptr) slots[SLOTS]; /* each block's first words hold its own address */
static atomic_int wrong;
static CUcontext context;

static void stamp(CUdeviceptr block) {
    CHECK(cuMemcpyHtoD(block, &block, sizeof block));
}

static void check_and_free(CUdeviceptr block) {
    CUdeviceptr found;
    CHECK(cuMemcpyDtoH(&found, block, sizeof found));
    wrong += found != block;
    CHECK(cuMemFree(block));
}

static void *run(void *argument) {
    unsigned state = (unsigned)(uintptr_t)argument;
    CHECK(cuCtxSetCurrent(context));
    for (int i = 0; i < ROUNDS; i++) {
        CUdeviceptr block;
        state = state * 1664525 + 1013904223;
        CHECK(cuMemAlloc(&block, 256 + (state >> 12) % 100000));
        stamp(block);
        CUdeviceptr other = atomic_exchange(&slots[(state >> 8) % SLOTS], block);
        if (other)
            check_and_free(other);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    context = use_primary(0);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            check_and_free(slots[i]);
    printf("wrong %d\n", atomic_load(&wrong));
    return atomic_load(&wrong) != 0;
}

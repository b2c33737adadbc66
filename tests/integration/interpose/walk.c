/*
 * Whoever goes through the pools meets each one that lives all the while, though other threads end
 * contexts meanwhile: the sums of bfc_stats never lack what the first context holds.
 */
#define BFCPRELOAD_WEAK
#include "interpose/api/bfcpreload.h"
#include "tests/integration/interpose/program.h"

#include <pthread.h>
#include <stdbool.h>

enum { ROUNDS = 400 };
static const size_t KEPT = (size_t)3 << 20;

static bool ended; /* atomic */

/* A younger context than the first one begins and ends all the time. */
static void *churn(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        CUcontext context;
        CUdeviceptr block;
        CHECK(cuCtxCreate_v4(&context, NULL, 0, 0));
        CHECK(cuMemAlloc_v2(&block, 1000));
        CHECK(cuCtxDestroy_v2(context));
    }
    __atomic_store_n(&ended, true, __ATOMIC_RELEASE);
    return unused;
}

int main(void) {
    struct bfcpreload_stats stats;
    pthread_t thread;
    CUdeviceptr block;
    unsigned lacked = 0;
    use_primary(0);
    CHECK(cuMemAlloc_v2(&block, KEPT));
    pthread_create(&thread, NULL, churn, NULL);
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
        if (bfc_stats && (bfc_stats(-1, &stats, sizeof stats) != 0 || stats.in_use < KEPT))
            lacked++;
    pthread_join(thread, NULL);
    printf("looks that lacked the first context: %u\n", lacked);
    return 0;
}

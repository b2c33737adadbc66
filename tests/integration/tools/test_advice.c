/* What bfcstat says about a job in which little is pooled. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/bfcstat/view/view.h"

static struct bfc_job job;

/* A job of `allocations` pooled allocations whose peak is `peak` bytes. */
static struct bfc_segment_header *fresh(uint64_t allocations, uint64_t peak) {
    memset(&job, 0, sizeof job);
    job.header.pooled_allocations = allocations;
    job.pools[0].state = BFC_POOL_ACTIVE;
    job.pools[0].stats.peak_requested = peak;
    return &job.header;
}

static bool says(const char *words) {
    const char *advice = coverage_advice(&job);
    return advice && strstr(advice, words);
}

Test(advice, nothing_for_a_pooled_job) {
    struct bfc_segment_header *header = fresh(100000, 1 << 30);
    header->bypassed_calls[BFC_BYPASS_HOST] = 1000000;
    header->bypassed_calls[BFC_BYPASS_MANAGED] = 3;
    header->forwarded_allocations[BFC_FORWARD_BAD_CALL] = 5;
    cr_expect_null(coverage_advice(&job));
    fresh(0, 0);
    cr_expect_null(coverage_advice(&job));
}

Test(advice, by_kind) {
    fresh(5, 100)->forwarded_allocations[BFC_FORWARD_DISABLED] = 50;
    cr_expect(says("BFC_DISABLE"));
    fresh(0, 0)->forwarded_allocations[BFC_FORWARD_OLD_DRIVER] = 1;
    cr_expect(says("update it"));
    fresh(500, 1000)->bypassed_bytes[BFC_BYPASS_VMM] = 1 << 30;
    cr_expect(says("cuMemCreate"));
    fresh(5, 1000)->bypassed_calls[BFC_BYPASS_ASYNC] = 100;
    cr_expect(says("cudaMallocAsync"));
    fresh(5, 1000)->bypassed_calls[BFC_BYPASS_MANAGED] = 100;
    cr_expect(says("managed"));
    fresh(5, 1000)->bypassed_calls[BFC_BYPASS_PITCH] = 100;
    cr_expect(says("pitched"));
}

Test(advice, a_framework_that_caches) {
    fresh(40, UINT64_C(40) << 20);
    cr_expect(says("PYTORCH_NO_CUDA_MEMORY_CACHING=1"));
    fresh(2000, UINT64_C(4000) << 20);
    cr_expect_null(coverage_advice(&job));
    fresh(1, UINT64_C(60) << 30);
    job.pools[0].device_total = UINT64_C(80) << 30;
    cr_expect(says("PYTORCH_NO_CUDA_MEMORY_CACHING=1"));
}

/* Few large blocks that are taken once, or that are freed, are no cache. */
Test(advice, a_program_that_caches_nothing) {
    fresh(3, UINT64_C(3) << 30);
    job.pools[0].device_total = UINT64_C(80) << 30;
    cr_expect_null(coverage_advice(&job));
    fresh(100, UINT64_C(100) << 20)->pooled_frees = 90;
    cr_expect_null(coverage_advice(&job));
}

/*
 * Says why little of a job's memory is pooled, and what to do about it.
 *
 * The possible reasons are checked in order, and the advice for the first that applies is given.
 * What the pools do not serve is compared with what they serve, in calls and also in bytes, because
 * a framework with its own cache makes few but large allocations.
 */
#include "tools/bfcstat/view/view.h"

/* A program that caches memory itself takes it in FEW pieces at most, but not in fewer than SOME,
 * of PIECE bytes or more on average. */
enum { SOME = 16, FEW = 1000, PIECE = 1 << 20 };

static uint64_t peak_of_pools(const struct bfc_job *job) {
    uint64_t peak = 0;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (job->pools[i].state != BFC_POOL_UNUSED)
            peak += job->pools[i].stats.peak_requested;
    return peak;
}

/* Whether allocations of this kind, which the library does not serve, outweigh those from the
 * pools: they are more calls than the pools' allocations, or more bytes than the pools ever held at
 * a time. */
static bool bypass_outweighs(const struct bfc_job *job, enum bfc_bypass_kind kind) {
    return job->header.bypassed_calls[kind] > bfc_job_pooled(job).allocations ||
           job->header.bypassed_bytes[kind] > peak_of_pools(job);
}

/* Settings with which JAX allocates by the driver's plain calls, which are pooled. JAX 0.10 always
 * allocates by cuMemCreate, which is not pooled. From 0.12 on, the flag in XLA_FLAGS makes JAX do
 * without cuMemCreate; versions that do not know this flag refuse to start with it. */
#define JAX_ADVICE                                                                                 \
    "XLA_PYTHON_CLIENT_ALLOCATOR=platform, from 0.12 on with "                                     \
    "XLA_FLAGS=--xla_gpu_experimental_vmm_disabled=true"

/* Whether a pool of device memory has held so much of its device that the program must manage the
 * memory itself: caches that begin with one large piece take half of the free memory or more. */
static bool takes_the_device(const struct bfc_job *job) {
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        const struct bfc_segment_pool *pool = &job->pools[i];
        if (pool->state != BFC_POOL_UNUSED && pool->memory == BFC_MEMORY_DEVICE &&
            pool->stats.peak_requested / 2 > pool->device_total / 5)
            return true;
    }
    return false;
}

/* Whether the program's allocations are few but large and nearly all kept, as when it caches memory
 * itself. A program that takes what it needs once, in a few blocks, does not seem to. */
static bool caches_for_itself(const struct bfc_job *job) {
    struct bfc_pooled_calls pooled = bfc_job_pooled(job);
    return pooled.allocations > 0 && pooled.allocations < FEW &&
           pooled.frees <= pooled.allocations / 4 &&
           peak_of_pools(job) / pooled.allocations >= PIECE &&
           (pooled.allocations >= SOME || takes_the_device(job));
}

const char *coverage_advice(const struct bfc_job *job) {
    const struct bfc_segment_header *header = &job->header;
    uint64_t pooled = bfc_job_pooled(job).allocations;
    if (header->forwarded_allocations[BFC_FORWARD_DISABLED] > pooled)
        return "little is pooled because BFC_DISABLE, BFC_ONLY or BFC_NOT says so";
    if (header->forwarded_allocations[BFC_FORWARD_OLD_DRIVER] > pooled)
        return "little is pooled because the driver lacks calls that the pool needs: update it";
    if (bypass_outweighs(job, BFC_BYPASS_VMM))
        return "little is pooled because the program maps memory for itself (cuMemCreate). "
               "PyTorch: "
               "leave expandable_segments off; JAX: " JAX_ADVICE;
    if (bypass_outweighs(job, BFC_BYPASS_ASYNC))
        return "little is pooled because the program takes stream-ordered memory "
               "(cudaMallocAsync), which comes from the driver's own pool. PyTorch: "
               "PYTORCH_CUDA_ALLOC_CONF=backend:native with PYTORCH_NO_CUDA_MEMORY_CACHING=1; "
               "JAX: " JAX_ADVICE "; RMM: a cuda_memory_resource";
    if (bypass_outweighs(job, BFC_BYPASS_MANAGED))
        return "little is pooled because the program takes managed memory (cudaMallocManaged), "
               "which is never pooled";
    if (bypass_outweighs(job, BFC_BYPASS_ARRAY) || bypass_outweighs(job, BFC_BYPASS_PITCH))
        return "little is pooled because the program takes arrays, which the driver lays out for "
               "itself, or pitched memory of ever new widths";
    if (caches_for_itself(job))
        return "allocations are few and large: the program's framework seems to cache for itself. "
               "To let it use this pool instead: PyTorch: PYTORCH_NO_CUDA_MEMORY_CACHING=1; "
               "JAX: " JAX_ADVICE
               "; CuPy: cupy.cuda.set_allocator(None); RMM: a cuda_memory_resource";
    return NULL;
}

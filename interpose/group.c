/* Groups, and what the program calls to begin and end one. */
#include "interpose/group.h"

#include "interpose/bfcpreload.h"
#include "interpose/capture.h"
#include "interpose/reuse.h"

__thread struct bfc_group bfc_group __attribute__((tls_model("initial-exec")));

static uint64_t round_up(const struct bfc_domain *domain, uint64_t bytes) {
    uint64_t granule = bfc_pool_granule(domain->pool);
    return (bytes + granule - 1) / granule * granule;
}

bool bfc_group_take(struct bfc_domain *domain, size_t bytes, CUdeviceptr *pointer) {
    if (domain != bfc_group.domain || bytes > bfc_group.left ||
        bfc_pool_carve(domain->pool, bfc_group.next, bytes) != BFC_OK)
        return false;
    *pointer = bfc_group.next;
    bfc_group.next += round_up(domain, bytes);
    bfc_group.left -= round_up(domain, bytes);
    return true;
}

/* The rest was never the program's: it goes back under the mark that it came with. */
static void give_back_rest(void) {
    struct bfc_block_info rest;
    struct bfc_pool *pool = bfc_group.domain->pool;
    if (bfc_group.left && bfc_pool_find(pool, bfc_group.next, &rest))
        bfc_pool_free(pool, bfc_group.next, rest.mark);
}

int bfc_group_begin(size_t bytes) {
    const struct bfc_driver *driver = bfc_driver();
    enum bfc_forward_reason reason;
    enum bfc_status status;
    CUdeviceptr start;
    if (bfc_group.domain)
        return BFCPRELOAD_IN_GROUP;
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return BFCPRELOAD_BAD_ARGUMENT;
    struct bfc_domain *domain = driver && driver->can_pool && bfc_process() && bfc_process_serves()
                                    ? bfc_current_domain(driver, &reason)
                                    : NULL;
    if (!domain)
        return BFCPRELOAD_NO_CONTEXT;
    enum bfc_capture_state captures = bfc_capture_state(driver);
    if (captures == BFC_CAPTURE_BARRED ||
        bfc_reuse_allocate(driver, domain, round_up(domain, bytes),
                           captures == BFC_CAPTURE_NONE ? BFC_REUSE_ANY : BFC_REUSE_CLEAN, &start,
                           &status) != CUDA_SUCCESS)
        return BFCPRELOAD_OUT_OF_MEMORY;
    bfc_domain_keep(domain);
    bfc_group =
        (struct bfc_group){.left = round_up(domain, bytes), .next = start, .domain = domain};
    return 0;
}

int bfc_group_end(void) {
    if (!bfc_group.domain)
        return BFCPRELOAD_IN_GROUP;
    if (bfc_process_if_made()) {
        give_back_rest();
        bfc_domain_drop(bfc_group.domain);
    }
    bfc_group = (struct bfc_group){.domain = NULL};
    return 0;
}

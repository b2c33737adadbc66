/* Page calls that do nothing. */
#include "tests/bench/null_pages.h"

#define PAGE (UINT64_C(2) << 20)

static enum bfc_reserve_result reserve_addresses(void *context, uint64_t bytes, bfc_addr *start) {
    uint64_t *next = context;
    *start = *next;
    *next += bytes + PAGE;
    return BFC_RESERVED;
}

static void unreserve_addresses(void *context, bfc_addr start, uint64_t bytes) {
    (void)context, (void)start, (void)bytes;
}

static enum bfc_reserve_result create_page(void *context, uint64_t bytes, bfc_page *page,
                                           struct bfc_ask *ask) {
    (void)ask;
    (void)context, (void)bytes;
    *page = 1;
    return BFC_RESERVED;
}

static void release_page(void *context, bfc_page page, uint64_t bytes) {
    (void)context, (void)page, (void)bytes;
}

static bool map_page(void *context, bfc_addr start, uint64_t bytes, bfc_page page) {
    (void)context, (void)start, (void)bytes, (void)page;
    return true;
}

static bool change_pages(void *context, bfc_addr start, uint64_t bytes) {
    (void)context, (void)start, (void)bytes;
    return true;
}

const struct bfc_page_calls null_pages = {.granule = PAGE,
                                          .addresses = UINT64_C(1) << 40,
                                          .reserve = reserve_addresses,
                                          .unreserve = unreserve_addresses,
                                          .create = create_page,
                                          .release = release_page,
                                          .map = map_page,
                                          .unmap = change_pages,
                                          .allow = change_pages};

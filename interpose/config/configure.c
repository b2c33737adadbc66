/* Copies the options that concern a pool into the pool's configuration. */
#include "base/numbers.h"
#include "interpose/config/options.h"
#include "layout/segment.h"
#include "pool/pool.h"

uint64_t bfc_amount_bytes(const struct bfc_amount *amount, uint64_t total) {
    return amount->fraction > 0 ? (uint64_t)(amount->fraction * (double)total) : amount->bytes;
}

/* Pages are mapped and moved as a whole, so each is at most 1/512 of the device's memory. */
enum { PAGES_OF_DEVICE = 512 };

static void configure_pages(const struct bfc_options *options, uint64_t total,
                            struct bfc_pool_config *config) {
    config->page_slack = options->page_slack;
    config->page_rule = (enum bfc_page_rule)options->page;
    if (config->page_rule == BFC_PAGE_FIT)
        config->page_most = bfc_min(config->page_most, bfc_max(total / PAGES_OF_DEVICE, 1));
}

static void configure_splitting(const struct bfc_options *options, uint64_t total,
                                struct bfc_pool_config *config) {
    config->split_ratio = options->split_ratio > 0 ? options->split_ratio : 0;
    config->split_slack = bfc_amount_bytes(&options->split_slack, total);
    config->max_split = options->max_split;
    config->roundup = options->roundup > 0 ? UINT64_C(1) << (options->roundup - 1) : 0;
}

void bfc_options_configure(const struct bfc_options *options, uint64_t device_total,
                           struct bfc_pool_config *config) {
    config->policy = (enum bfc_policy)options->policy;
    config->growth = (enum bfc_growth)options->growth;
    config->growth_size = options->growth_size;
    config->growth_max = options->growth_max;
    config->preallocate = bfc_amount_bytes(&options->preallocate, device_total);
    config->limit = bfc_amount_bytes(&options->limit, device_total);
    config->pending_budget = options->pending_budget;
    config->gc_threshold =
        bfc_amount_bytes(&options->gc_threshold, bfc_min(config->limit, device_total));
    config->track_idle = options->trim_idle >= 0;
    config->release_waits = true;
    config->no_last_resorts = !(options->last_resort >> BFC_RUNG_POOL & 1);
    configure_pages(options, device_total, config);
    configure_splitting(options, device_total, config);
}

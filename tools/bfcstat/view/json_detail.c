#include "tools/bfcstat/view/json_detail.h"

#include "tools/bfcstat/view/view.h"

void put_share(struct json_writer *json, const char *key, double share) {
    if (share < 0)
        json_null(json, key);
    else
        json_number(json, key, share);
}

static void put_fit(struct json_writer *json, const struct bfc_segment_pool *pool) {
    put_share(json, "fragmentation", bfc_pool_fragmentation(pool));
    json_unsigned(json, "largest_request", pool->fit.request);
    json_unsigned(json, "too_small", pool->fit.too_small);
}

void put_amounts(struct json_writer *json, const struct bfc_segment_pool *pool) {
    const struct bfc_pool_stats *stats = &pool->stats;
    json_unsigned(json, "in_use", stats->in_use);
    json_unsigned(json, "requested", stats->requested);
    json_unsigned(json, "ready", stats->ready);
    json_unsigned(json, "pending", stats->pending);
    json_unsigned(json, "deferred", stats->deferred);
    json_unsigned(json, "reserved", stats->reserved);
    json_unsigned(json, "largest_free", stats->largest_free);
    put_fit(json, pool);
    json_unsigned(json, "peak_in_use", stats->peak_in_use);
    json_unsigned(json, "peak_reserved", stats->peak_reserved);
}

static void put_sizes(struct json_writer *json, const struct bfc_segment_pool *pool) {
    uint64_t sizes[BFC_SIZE_BINS];
    bfc_pool_sizes(pool, sizes);
    json_array(json, "sizes");
    for (unsigned bin = 0; bin < BFC_SIZE_BINS; bin++) {
        if (!sizes[bin])
            continue;
        json_object(json, NULL);
        json_unsigned(json, "up_to", UINT64_C(1) << bin);
        json_unsigned(json, "count", sizes[bin]);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_latency(struct json_writer *json, const char *key, const uint64_t *bins) {
    uint64_t timed = 0;
    for (unsigned bin = 0; bin < BFC_LATENCY_BINS; bin++)
        timed += bins[bin];
    json_object(json, key);
    json_unsigned(json, "timed", timed);
    json_unsigned(json, "p50_ns", bfc_latency_quantile(bins, 0.5));
    json_unsigned(json, "p90_ns", bfc_latency_quantile(bins, 0.9));
    json_unsigned(json, "p99_ns", bfc_latency_quantile(bins, 0.99));
    json_unsigned(json, "most_ns", bfc_latency_quantile(bins, 1));
    json_object_end(json);
}

void put_histograms(struct json_writer *json, const struct bfc_segment_pool *pool) {
    put_sizes(json, pool);
    put_latency(json, "allocate_latency", pool->allocate_latency);
    put_latency(json, "free_latency", pool->free_latency);
    put_latency(json, "host_wait_latency", pool->host_wait_latency);
}

static void put_number(struct json_writer *json, const char *key, int32_t number) {
    if (number < 0)
        json_null(json, key);
    else
        json_signed(json, key, number);
}

void put_rank(struct json_writer *json, const struct bfc_segment_header *header) {
    put_number(json, "rank", header->rank);
    put_number(json, "local_rank", header->local_rank);
    put_number(json, "ranks", header->ranks);
    json_string(json, "job", header->job);
}

/* Writes a region's map: each cell is two hexadecimal digits, how much of it is in use and how much
 * is freed, but may still be used by the device. */
static void put_cells(struct json_writer *json, const struct bfc_map_row *row) {
    static const char digits[] = "0123456789abcdef";
    char text[2 * BFC_MAP_CELLS];
    unsigned cells = bfc_map_row_cells(row);
    for (unsigned i = 0; i < cells; i++) {
        text[2 * i] = digits[row->cells[i] >> 4];
        text[2 * i + 1] = digits[row->cells[i] & 15];
    }
    json_string_n(json, "cells", text, 2 * (size_t)cells);
}

void put_map(struct json_writer *json, const struct bfc_job *job) {
    json_object(json, "map");
    json_unsigned(json, "refreshed_ns", job->map.refreshed_ns);
    json_unsigned(json, "left_out", job->map.left_out);
    json_array(json, "rows");
    for (uint64_t i = 0; i < job->map.rows; i++) {
        const struct bfc_map_row *row = &job->map.row[i];
        json_object(json, NULL);
        json_unsigned(json, "pool", row->pool);
        json_unsigned(json, "start", row->start);
        json_unsigned(json, "size", row->size);
        json_unsigned(json, "cell_bytes", row->cell_bytes);
        put_cells(json, row);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

void put_events(struct json_writer *json, const char *key, const struct bfc_event *events,
                size_t count) {
    json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        json_unsigned(json, "number", events[i].stamp - 1);
        json_unsigned(json, "us", bfc_event_us(events[i].what));
        json_string(json, "kind", bfc_event_kind_name(bfc_event_kind_of(events[i].what)));
        json_unsigned(json, "pool", bfc_event_pool(events[i].what));
        json_unsigned(json, "address", events[i].address);
        json_unsigned(json, "bytes", events[i].bytes);
        json_object_end(json);
    }
    json_array_end(json);
}

void put_sleep(struct json_writer *json, const struct bfc_job *job) {
    const struct bfc_segment_sleep *sleep = &job->header.sleep;
    json_object(json, "sleep");
    json_string(json, "state", job_sleep_name(sleep->state));
    json_unsigned(json, "since_ns", sleep->since_ns);
    json_unsigned(json, "asleep", job_totals(job).asleep);
    json_unsigned(json, "kept", sleep->kept);
    json_string(json, "where", sleep->where);
    json_string(json, "why", sleep->why);
    json_unsigned(json, "falls", sleep->falls);
    json_unsigned(json, "wakes", sleep->wakes);
    json_unsigned(json, "refused", sleep->refused);
    json_unsigned(json, "fall_ns", sleep->fall_ns);
    json_unsigned(json, "wake_ns", sleep->wake_ns);
    json_object_end(json);
}

/*
 * bfcstat's metrics in Prometheus's text format 0.0.4: one family after another, with a sample for
 * each pool.
 *
 * It follows Prometheus's conventions: base units (bytes, seconds) as a suffix, counters end in
 * _total, labels for dimensions over which a sum makes sense.
 */
#include "tools/bfcstat/view/view.h"

#include <inttypes.h>

#include "tools/text/text.h"

struct family {
    const char *name, *type, *help;
    size_t offset; /* in struct bfc_segment_pool */
    double scale;  /* to the base unit */
};

#define STATS(field) offsetof(struct bfc_segment_pool, stats.field)
#define FIELD(field) offsetof(struct bfc_segment_pool, field)

static const struct family families[] = {
    {"in_use_bytes", "gauge", "Blocks that the program holds, padding included.", STATS(in_use), 1},
    {"requested_bytes", "gauge", "What the program asked for in those blocks.", STATS(requested),
     1},
    {"ready_bytes", "gauge", "Cached memory that is safe to hand out at once.", STATS(ready), 1},
    {"pending_bytes", "gauge", "Cached memory that work under way may still use.", STATS(pending),
     1},
    {"deferred_bytes", "gauge", "Memory that was freed during a stream capture.", STATS(deferred),
     1},
    {"reserved_bytes", "gauge", "Memory taken from the device.", STATS(reserved), 1},
    {"largest_free_bytes", "gauge", "Largest free block in the cache.", STATS(largest_free), 1},
    {"largest_request_bytes", "gauge", "Largest allocation among the last 4,096 events.",
     FIELD(fit.request), 1},
    {"ready_too_small_bytes", "gauge", "Ready memory in blocks too small for that allocation.",
     FIELD(fit.too_small), 1},
    {"peak_in_use_bytes", "gauge", "The most that was ever in use.", STATS(peak_in_use), 1},
    {"peak_reserved_bytes", "gauge", "The most that was ever reserved.", STATS(peak_reserved), 1},
    {"device_memory_bytes", "gauge", "Memory of the device.", FIELD(device_total), 1},
    {"regions", "gauge", "Pieces in which memory was reserved.", STATS(regions), 1},
    {"blocks", "gauge", "Blocks that the program holds.", STATS(blocks), 1},
    {"allocations_total", "counter", "Allocations served.", STATS(allocations), 1},
    {"frees_total", "counter", "Frees.", STATS(frees), 1},
    {"hits_total", "counter", "Allocations that did not ask the device.", STATS(hits), 1},
    {"misses_total", "counter", "Allocations that had to ask the device.", STATS(misses), 1},
    {"reserve_calls_total", "counter", "Reservations asked of the device.", STATS(reserve_calls),
     1},
    {"refusals_total", "counter", "Reservations that the device refused.", STATS(refusals), 1},
    {"release_calls_total", "counter", "Regions given back to the device.", STATS(release_calls),
     1},
    {"retries_total", "counter", "Allocations saved by giving memory back.", STATS(retries), 1},
    {"out_of_memory_total", "counter", "Allocations that failed.", STATS(out_of_memory), 1},
    {"invalid_frees_total", "counter", "Double or interior frees.", STATS(invalid_frees), 1},
    {"fence_waits_total", "counter", "Waits of the pool for device work.", STATS(waits), 1},
    {"fence_wait_seconds_total", "counter", "Time in those waits.", STATS(wait_ns), 1e-9},
    {"page_addresses_bytes", "gauge", "Addresses reserved for pages.", FIELD(pages.addresses), 1},
    {"pages_ready_bytes", "gauge", "Pages that could move, when the map was last refreshed.",
     FIELD(pages.ready), 1},
    {"pages_created_bytes_total", "counter", "Pages made.", FIELD(pages.created), 1},
    {"pages_mapped_bytes_total", "counter", "Pages mapped, new or moved.", FIELD(pages.mapped), 1},
    {"pages_released_bytes_total", "counter", "Pages given back.", FIELD(pages.released), 1},
    {"page_calls_total", "counter", "Driver calls for pages.", FIELD(pages.calls), 1},
    {"host_waits_total", "counter", "Waits of the host made for frees.", FIELD(host_waits), 1},
    {"host_wait_seconds_total", "counter", "Time in those waits.", FIELD(host_wait_ns), 1e-9},
};

/* Of the pools of host memory. */
static const struct family spilled[] = {
    {"spilled_bytes", "gauge", "Host memory that the program holds in place of device memory.",
     STATS(in_use), 1},
    {"spilled_blocks", "gauge", "Blocks of it.", STATS(blocks), 1},
    {"spilled_reserved_bytes", "gauge", "Host memory that is pinned for it.", STATS(reserved), 1},
    {"peak_spilled_bytes", "gauge", "The most that was ever spilled.", STATS(peak_in_use), 1},
    {"spills_total", "counter", "Allocations that host memory served.", STATS(allocations), 1},
};

/* A label's value: backslash, quote and line feed are escaped, other control characters are not. */
static void put_label(FILE *stream, const char *name, const char *value) {
    char shown[512];
    fprintf(stream, "%s=\"", name);
    for (const char *c = text_printable(value, shown, sizeof shown); *c; c++) {
        if (*c == '\\' || *c == '"')
            putc('\\', stream);
        putc(*c, stream);
    }
    putc('"', stream);
}

static void put_job_labels(FILE *stream, const struct bfc_job *job) {
    const struct bfc_segment_header *header = &job->header;
    fprintf(stream, "{pid=\"%" PRId32 "\",pid_namespace=\"%" PRIu64 "\",", header->pid,
            header->pid_namespace);
    put_label(stream, "command", header->command);
    if (header->rank >= 0) {
        fprintf(stream, ",rank=\"%" PRId32 "\",", header->rank);
        put_label(stream, "job_name", header->job);
    }
}

static void put_pool_labels(FILE *stream, const struct bfc_job *job,
                            const struct bfc_segment_pool *pool) {
    put_job_labels(stream, job);
    fprintf(stream, ",device=\"%" PRId64 "\",context=\"%" PRIu64 "\"", pool->device,
            pool->context_id);
}

static void put_head(FILE *stream, const char *name, const char *type, const char *help) {
    fprintf(stream, "# HELP bfcpreload_%s %s\n# TYPE bfcpreload_%s %s\n", name, help, name, type);
}

static void put_value(FILE *stream, uint64_t value, double scale) {
    if (scale == 1)
        fprintf(stream, " %" PRIu64 "\n", value);
    else
        fprintf(stream, " %.9g\n", (double)value * scale);
}

static void put_samples(FILE *stream, const struct bfc_job *job, const struct family *family,
                        bool host) {
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        const struct bfc_segment_pool *pool = &job->pools[i];
        if (pool->state != BFC_POOL_ACTIVE || bfc_pool_is_host(pool) != host)
            continue;
        fprintf(stream, "bfcpreload_%s", family->name);
        put_pool_labels(stream, job, pool);
        fputs("}", stream);
        put_value(stream, *(const uint64_t *)(const void *)((const char *)pool + family->offset),
                  family->scale);
    }
}

static void put_family(FILE *stream, const struct findings *findings, const struct family *family,
                       bool host) {
    put_head(stream, family->name, family->type, family->help);
    for (size_t i = 0; i < findings->job_count; i++)
        put_samples(stream, &findings->jobs[i], family, host);
}

/* A count of the whole process, with its kind as a label. */
static void put_kind(FILE *stream, const struct bfc_job *job, const char *name, const char *label,
                     const char *kind, uint64_t value) {
    if (!kind || !value)
        return;
    fprintf(stream, "bfcpreload_%s", name);
    put_job_labels(stream, job);
    fprintf(stream, ",%s=\"%s\"}", label, kind);
    put_value(stream, value, 1);
}

static void put_rung(FILE *stream, const char *name, const struct bfc_job *job,
                     const struct bfc_segment_pool *pool, size_t field, double scale) {
    for (unsigned k = 0; k < BFC_RUNGS; k++) {
        struct bfc_rung_counts counts = bfc_pool_rung(pool, (enum bfc_rung)k);
        if (!bfc_rung_name((enum bfc_rung)k) || !counts.climbed)
            continue;
        fprintf(stream, "bfcpreload_%s", name);
        put_pool_labels(stream, job, pool);
        fprintf(stream, ",rung=\"%s\"}", bfc_rung_name((enum bfc_rung)k));
        put_value(stream, *(const uint64_t *)(const void *)((const char *)&counts + field), scale);
    }
}

static void put_last_resorts(FILE *stream, const struct findings *findings) {
    static const struct family rungs[] = {
        {"last_resorts_total", "counter", "Last resorts that were tried.",
         offsetof(struct bfc_rung_counts, climbed), 1},
        {"last_resorts_saved_total", "counter", "Allocations that they served.",
         offsetof(struct bfc_rung_counts, saved), 1},
        {"last_resort_seconds_total", "counter", "Time in them.",
         offsetof(struct bfc_rung_counts, ns), 1e-9},
    };
    for (size_t f = 0; f < sizeof rungs / sizeof rungs[0]; f++) {
        put_head(stream, rungs[f].name, rungs[f].type, rungs[f].help);
        for (size_t i = 0; i < findings->job_count; i++)
            for (unsigned k = 0; k < BFC_SEGMENT_POOLS; k++)
                if (findings->jobs[i].pools[k].state == BFC_POOL_ACTIVE)
                    put_rung(stream, rungs[f].name, &findings->jobs[i], &findings->jobs[i].pools[k],
                             rungs[f].offset, rungs[f].scale);
    }
}

static void put_waiting_pool(FILE *stream, const struct bfc_job *job, unsigned index) {
    const struct bfc_waiter *waiter = job_waiter(job, index);
    fprintf(stream, "bfcpreload_waiting_bytes");
    put_pool_labels(stream, job, &job->pools[index]);
    fputs("}", stream);
    put_value(stream, waiter ? waiter->bytes : 0, 1);
}

static void put_waiting(FILE *stream, const struct findings *findings) {
    put_head(stream, "waiting_bytes", "gauge", "Memory that an allocation waits for (BFC_WAIT).");
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_SEGMENT_POOLS; k++)
            if (findings->jobs[i].pools[k].state == BFC_POOL_ACTIVE)
                put_waiting_pool(stream, &findings->jobs[i], k);
}

/* Where it was measured. */
static void put_fragmentation(FILE *stream, const struct findings *findings) {
    put_head(stream, "fragmentation_ratio", "gauge",
             "Share of the ready memory in blocks too small for the largest request lately.");
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_SEGMENT_POOLS; k++) {
            const struct bfc_segment_pool *pool = &findings->jobs[i].pools[k];
            if (pool->state != BFC_POOL_ACTIVE || bfc_pool_fragmentation(pool) < 0)
                continue;
            fputs("bfcpreload_fragmentation_ratio", stream);
            put_pool_labels(stream, &findings->jobs[i], pool);
            fprintf(stream, "} %.6g\n", bfc_pool_fragmentation(pool));
        }
}

static void put_coverage(FILE *stream, const struct findings *findings) {
    put_head(stream, "forwarded_allocations_total", "counter",
             "Allocations that went to the driver, by reason.");
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_FORWARD_REASONS; k++)
            put_kind(stream, &findings->jobs[i], "forwarded_allocations_total", "reason",
                     bfc_forward_reason_name((enum bfc_forward_reason)k),
                     findings->jobs[i].header.forwarded_allocations[k]);
    put_head(stream, "bypassed_calls_total", "counter",
             "Allocations that never pass through the pool, by kind.");
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_BYPASS_KINDS; k++)
            put_kind(stream, &findings->jobs[i], "bypassed_calls_total", "kind",
                     bfc_bypass_kind_name((enum bfc_bypass_kind)k),
                     findings->jobs[i].header.bypassed_calls[k]);
}

void show_jobs_prometheus(const struct findings *findings, FILE *stream) {
    put_head(stream, "jobs", "gauge", "Jobs that run with bfcpreload.");
    fprintf(stream, "bfcpreload_jobs %zu\n", findings->job_count);
    put_head(stream, "jobs_refused", "gauge",
             "Jobs beside them that could not be read: other users', or of another version.");
    fprintf(stream, "bfcpreload_jobs_refused %zu\n", findings->refused_count);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        put_family(stream, findings, &families[i], false);
    for (size_t i = 0; i < sizeof spilled / sizeof spilled[0]; i++)
        put_family(stream, findings, &spilled[i], true);
    put_last_resorts(stream, findings);
    put_waiting(stream, findings);
    put_fragmentation(stream, findings);
    put_coverage(stream, findings);
}

/*
 * Writes bfcstat's metrics in Prometheus's text format 0.0.4 or as OpenMetrics 1.0: one family of
 * metrics after another, each with a sample for each pool, job or device.
 *
 * The metrics follow Prometheus's conventions: names end in the base unit (bytes, seconds), those
 * of counters in _total, and labels stand for dimensions over which a sum makes sense. No label
 * holds arguments of a program, which may be secret.
 */
#include "tools/bfcstat/view/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/config/options.h"
#include "tools/text/print_text.h"

struct family {
    const char *name, *type, *help;
    size_t offset; /* offset of the value in struct bfc_segment_pool or struct bfc_rung_counts */
    /* factor that converts the value to the metric's unit, such as from nanoseconds to seconds */
    double scale;
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
    {"retries_total", "counter", "Allocations that a last resort saved.", STATS(retries), 1},
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
    {"asleep_bytes", "gauge", "Memory that is asleep: reserved, but not on the device.",
     FIELD(pages.asleep), 1},
    {"page_calls_total", "counter", "Driver calls for pages.", FIELD(pages.calls), 1},
    {"plan_memory_bytes", "gauge", "Reserved for the plan that is followed.", FIELD(plan.memory),
     1},
    {"plan_bound_bytes", "gauge", "No plan of the loop needs less.", FIELD(plan.bound), 1},
    {"plan_periods_total", "counter", "Periods of the plan that were gone through.",
     FIELD(plan.periods), 1},
    {"plan_followed_total", "counter", "Allocations served at their planned addresses.",
     FIELD(plan.followed), 1},
    {"plan_missed_total", "counter", "Allocations that were not, while a plan was followed.",
     FIELD(plan.missed), 1},
    {"plan_lost_total", "counter", "Times that the place in the plan was lost.", FIELD(plan.lost),
     1},
    {"host_waits_total", "counter", "Waits of the host made for frees.", FIELD(host_waits), 1},
    {"host_wait_seconds_total", "counter", "Time in those waits.", FIELD(host_wait_ns), 1e-9},
    {"fences_total", "counter", "Events recorded for frees, trims and sleep.", FIELD(fences), 1},
    {"device_waits_total", "counter", "Waits on the device for such events.", FIELD(device_waits),
     1},
};

/* Families of metrics of pools of host memory, which serve allocations for which the device has no
 * room (BFC_SPILL). */
static const struct family spilled[] = {
    {"spilled_bytes", "gauge", "Host memory that the program holds in place of device memory.",
     STATS(in_use), 1},
    {"spilled_blocks", "gauge", "Blocks of it.", STATS(blocks), 1},
    {"spilled_reserved_bytes", "gauge", "Host memory that is pinned for it.", STATS(reserved), 1},
    {"peak_spilled_bytes", "gauge", "The most that was ever spilled.", STATS(peak_in_use), 1},
    {"spills_total", "counter", "Allocations that host memory served.", STATS(allocations), 1},
};

/* A pool whose context exists. `labels` is the text of the labels that all its samples have,
 * without the closing brace. */
struct row {
    const struct bfc_job *job;
    const struct bfc_segment_pool *pool;
    char *labels;
};

struct metrics {
    const struct findings *findings;
    enum metrics_format format;
    FILE *stream;
    struct row *rows;
    size_t row_count;
};

/* Writes a label with a comma before it. Backslashes and quotes in its value are escaped; control
 * characters, among them line feeds, become '?'. */
static void put_label(FILE *stream, const char *name, const char *value) {
    char shown[512];
    fprintf(stream, ",%s=\"", name);
    for (const char *c = text_printable(value, shown, sizeof shown); *c; c++) {
        if (*c == '\\' || *c == '"')
            putc('\\', stream);
        putc(*c, stream);
    }
    putc('"', stream);
}

static void put_label_if(FILE *stream, const char *name, const char *value) {
    if (value[0])
        put_label(stream, name, value);
}

static void put_identity(FILE *stream, const struct job_identity *identity) {
    put_label(stream, "comm", identity->comm);
    put_label(stream, "user", identity->user);
    put_label_if(stream, "slurm_job", identity->slurm_job);
    put_label_if(stream, "slurm_step", identity->slurm_step);
    put_label_if(stream, "pod", identity->pod);
    put_label_if(stream, "namespace", identity->pod_namespace);
    put_label_if(stream, "container", identity->container);
    put_label_if(stream, "pod_uid", identity->pod_uid);
    put_label_if(stream, "container_id", identity->container_id);
}

static void put_job_labels(const struct findings *findings, const struct bfc_job *job,
                           FILE *stream) {
    const struct bfc_segment_header *header = &job->header;
    fprintf(stream, "{pid=\"%" PRId32 "\",pid_namespace=\"%" PRIu64 "\"", header->pid,
            header->pid_namespace);
    put_identity(stream, &findings->identities[job - findings->jobs]);
    if (header->rank >= 0) {
        fprintf(stream, ",rank=\"%" PRId32 "\"", header->rank);
        put_label_if(stream, "job_name", header->job);
    }
}

/* Writes labels for a device: its PCI address, and its UUID in the form that DCGM's metrics use, so
 * that queries can join these metrics with DCGM's. */
static void put_device_labels(const uint8_t uuid[16], const char *bus_id, FILE *stream) {
    static const uint8_t none[16];
    char text[GPU_UUID_TEXT];
    if (memcmp(uuid, none, sizeof none) != 0)
        put_label(stream, "UUID", gpu_uuid(uuid, text, sizeof text));
    put_label_if(stream, "pci_bus_id", bus_id);
}

static void put_pool_labels(const struct findings *findings, const struct bfc_job *job,
                            const struct bfc_segment_pool *pool, FILE *stream) {
    char bus_id[GPU_SHORT_TEXT];
    put_job_labels(findings, job, stream);
    fprintf(stream, ",gpu=\"%" PRId64 "\"", pool->device);
    put_device_labels(pool->device_uuid, gpu_bus_id(pool->device_bus_id, bus_id, sizeof bus_id),
                      stream);
    fprintf(stream, ",context=\"%" PRIu64 "\"", pool->context_id);
}

/* Returns the labels of a pool, without the closing brace; NULL: no memory. */
static char *pool_labels(const struct findings *findings, const struct bfc_job *job,
                         const struct bfc_segment_pool *pool) {
    char *labels = NULL;
    size_t size;
    FILE *stream = open_memstream(&labels, &size);
    if (!stream)
        return NULL;
    put_pool_labels(findings, job, pool, stream);
    return fclose(stream) == 0 ? labels : NULL;
}

/* Whether an earlier row of the job has the same labels as `row`, which is the last row. A job's
 * library never makes two pools for one context, but a job can write anything into its
 * shared-memory segment, and Prometheus refuses the second sample of a series, or even the whole
 * answer. */
static bool is_repeated(const struct metrics *metrics, const struct row *row) {
    for (const struct row *other = row; other-- > metrics->rows && other->job == row->job;)
        if (other->pool->memory == row->pool->memory && strcmp(other->labels, row->labels) == 0)
            return true;
    return false;
}

static bool add_rows(struct metrics *metrics, const struct bfc_job *job) {
    for (unsigned k = 0; k < BFC_SEGMENT_POOLS; k++) {
        const struct bfc_segment_pool *pool = &job->pools[k];
        if (pool->state != BFC_POOL_ACTIVE)
            continue;
        struct row *larger =
            reallocarray(metrics->rows, metrics->row_count + 1, sizeof *metrics->rows);
        if (!larger)
            return false;
        metrics->rows = larger;
        struct row *row = &metrics->rows[metrics->row_count++];
        *row = (struct row){job, pool, pool_labels(metrics->findings, job, pool)};
        if (!row->labels)
            return false;
        if (is_repeated(metrics, row)) {
            free(row->labels);
            metrics->row_count--;
        }
    }
    return true;
}

static bool find_rows(struct metrics *metrics) {
    for (size_t i = 0; i < metrics->findings->job_count; i++)
        if (!add_rows(metrics, &metrics->findings->jobs[i]))
            return false;
    return true;
}

static void free_rows(struct metrics *metrics) {
    for (size_t i = 0; i < metrics->row_count; i++)
        free(metrics->rows[i].labels);
    free(metrics->rows);
}

/* Writes the HELP and TYPE lines of a family of metrics. `name` is the name of its samples;
 * OpenMetrics calls a counter's family by that name without _total. */
static void put_head(const struct metrics *metrics, const char *name, const char *type,
                     const char *help) {
    bool short_name = metrics->format == METRICS_OPEN && strcmp(type, "counter") == 0;
    int length = (int)(strlen(name) - (short_name ? strlen("_total") : 0));
    fprintf(metrics->stream, "# HELP bfcpreload_%.*s %s\n# TYPE bfcpreload_%.*s %s\n", length, name,
            help, length, name, type);
}

static void put_value(FILE *stream, uint64_t value, double scale) {
    if (scale == 1)
        fprintf(stream, " %" PRIu64 "\n", value);
    else
        fprintf(stream, " %.9g\n", (double)value * scale);
}

/* Writes a metric of the whole machine, which has one value and no labels. */
static void put_single(const struct metrics *metrics, const char *name, const char *help,
                       size_t value) {
    put_head(metrics, name, "gauge", help);
    fprintf(metrics->stream, "bfcpreload_%s %zu\n", name, value);
}

typedef void put_pool(const struct metrics *metrics, const struct row *row,
                      const struct family *family);

/* Writes a family of metrics: calls `put` for each pool of device memory, or of host memory if
 * `host` is set, whose context exists. */
static void put_family(const struct metrics *metrics, const struct family *family, bool host,
                       put_pool *put) {
    put_head(metrics, family->name, family->type, family->help);
    for (size_t i = 0; i < metrics->row_count; i++)
        if (bfc_pool_is_host(metrics->rows[i].pool) == host)
            put(metrics, &metrics->rows[i], family);
}

static void put_name(const struct metrics *metrics, const struct row *row, const char *name,
                     const char *suffix) {
    FILE *stream = metrics->stream;
    fputs("bfcpreload_", stream);
    fputs(name, stream);
    fputs(suffix, stream);
    fputs(row->labels, stream);
}

static void put_field(const struct metrics *metrics, const struct row *row,
                      const struct family *family) {
    put_name(metrics, row, family->name, "");
    putc('}', metrics->stream);
    put_value(metrics->stream,
              *(const uint64_t *)(const void *)((const char *)row->pool + family->offset),
              family->scale);
}

/* Writes how many bytes the pool may reserve at most (BFC_LIMIT); nothing if it has no limit. */
static void put_limit(const struct metrics *metrics, const struct row *row,
                      const struct family *family) {
    struct bfc_options options = {0};
    char text[64];
    size_t length;
    const char *value = bfc_job_configured(row->job, "BFC_LIMIT", &length);
    snprintf(text, sizeof text, "%.*s", value ? (int)length : 0, value ? value : "");
    if (!bfc_option_set(&options, bfc_option_find("BFC_LIMIT"), text))
        return;
    uint64_t bytes = bfc_amount_bytes(&options.limit, row->pool->device_total);
    if (bytes == UINT64_MAX)
        return;
    put_name(metrics, row, family->name, "");
    putc('}', metrics->stream);
    put_value(metrics->stream, bytes, 1);
}

static void put_fragmentation(const struct metrics *metrics, const struct row *row,
                              const struct family *family) {
    double share = bfc_pool_fragmentation(row->pool);
    if (share < 0)
        return;
    put_name(metrics, row, family->name, "");
    fprintf(metrics->stream, "} %.4g\n", share);
}

static void put_derived(const struct metrics *metrics) {
    static const struct family limit = {"limit_bytes", "gauge", "The most that may be reserved.", 0,
                                        1};
    static const struct family fragmentation = {
        "fragmentation_ratio", "gauge",
        "Share of the ready memory in blocks too small for the largest request lately.", 0, 1};
    put_family(metrics, &limit, false, put_limit);
    put_family(metrics, &fragmentation, false, put_fragmentation);
}

/* Exponents of 2 of the histograms' bounds in nanoseconds: 2^10, 2^13 ... 2^31, each 8 times the
 * one before. (A last bound is infinity.) The jobs count in finer steps, but Prometheus stores a
 * series for each bound of each pool, so there are only a few bounds. */
enum { FIRST_BOUND = 10, BOUND_STEP = 3, LAST_BOUND = 31 };

static uint64_t timed_below(const uint64_t *bins, uint64_t ns) {
    uint64_t sum = 0;
    for (unsigned b = 0; b < BFC_LATENCY_BINS && bfc_latency_bin_start(b) < ns; b++)
        sum += bins[b];
    return sum;
}

/* Returns the middle of a bin of a latency histogram, in nanoseconds. */
static double middle_of(unsigned bin) {
    return ((double)bfc_latency_bin_start(bin) + (double)bfc_latency_bin_start(bin + 1)) / 2;
}

static void put_histogram(const struct metrics *metrics, const struct row *row,
                          const struct family *family) {
    const uint64_t *bins =
        (const uint64_t *)(const void *)((const char *)row->pool + family->offset);
    double seconds = 0;
    for (int bound = FIRST_BOUND; bound <= LAST_BOUND; bound += BOUND_STEP) {
        put_name(metrics, row, family->name, "_bucket");
        fprintf(metrics->stream, ",le=\"%.9g\"}", (double)(UINT64_C(1) << bound) * 1e-9);
        put_value(metrics->stream, timed_below(bins, UINT64_C(1) << bound), 1);
    }
    put_name(metrics, row, family->name, "_bucket");
    fputs(",le=\"+Inf\"}", metrics->stream);
    put_value(metrics->stream, timed_below(bins, UINT64_MAX), 1);
    for (unsigned b = 0; b < BFC_LATENCY_BINS; b++)
        seconds += (double)bins[b] * middle_of(b) * 1e-9;
    put_name(metrics, row, family->name, "_sum");
    fprintf(metrics->stream, "} %.9g\n", seconds);
    put_name(metrics, row, family->name, "_count");
    putc('}', metrics->stream);
    put_value(metrics->stream, timed_below(bins, UINT64_MAX), 1);
}

static void put_histograms(const struct metrics *metrics) {
    static const struct family histograms[] = {
        {"allocation_seconds", "histogram", "Time of an allocation, of those that were timed.",
         FIELD(allocate_latency), 1e-9},
        {"free_seconds", "histogram", "Time of a free with its wait, of those that were timed.",
         FIELD(free_latency), 1e-9},
        {"host_wait_duration_seconds", "histogram",
         "Time of a wait of the host made for a free, of those that were timed.",
         FIELD(host_wait_latency), 1e-9},
    };
    for (size_t i = 0; i < sizeof histograms / sizeof histograms[0]; i++)
        put_family(metrics, &histograms[i], false, put_histogram);
}

/* Writes a counter of a job, with `kind` as the value of the label `label`; nothing if the count is
 * 0 or the kind has no name. */
static void put_kind(const struct metrics *metrics, const struct bfc_job *job, const char *name,
                     const char *label, const char *kind, uint64_t value) {
    if (!kind || !value)
        return;
    fprintf(metrics->stream, "bfcpreload_%s", name);
    put_job_labels(metrics->findings, job, metrics->stream);
    fprintf(metrics->stream, ",%s=\"%s\"}", label, kind);
    put_value(metrics->stream, value, 1);
}

static void put_rungs(const struct metrics *metrics, const struct row *row,
                      const struct family *family) {
    for (unsigned k = 0; k < BFC_RUNGS; k++) {
        struct bfc_rung_counts counts = bfc_pool_rung(row->pool, (enum bfc_rung)k);
        if (!bfc_rung_name((enum bfc_rung)k) || !counts.climbed)
            continue;
        put_name(metrics, row, family->name, "");
        fprintf(metrics->stream, ",rung=\"%s\"}", bfc_rung_name((enum bfc_rung)k));
        put_value(metrics->stream,
                  *(const uint64_t *)(const void *)((const char *)&counts + family->offset),
                  family->scale);
    }
}

static void put_last_resorts(const struct metrics *metrics) {
    static const struct family rungs[] = {
        {"last_resorts_total", "counter", "Last resorts that were tried.",
         offsetof(struct bfc_rung_counts, climbed), 1},
        {"last_resorts_saved_total", "counter", "Allocations that they served.",
         offsetof(struct bfc_rung_counts, saved), 1},
        {"last_resort_seconds_total", "counter", "Time in them.",
         offsetof(struct bfc_rung_counts, ns), 1e-9},
    };
    for (size_t f = 0; f < sizeof rungs / sizeof rungs[0]; f++)
        put_family(metrics, &rungs[f], false, put_rungs);
}

static void put_waiting(const struct metrics *metrics, const struct row *row,
                        const struct family *family) {
    const struct bfc_waiter *waiter = job_waiter(row->job, (unsigned)(row->pool - row->job->pools));
    put_name(metrics, row, family->name, "");
    putc('}', metrics->stream);
    put_value(metrics->stream, waiter ? waiter->bytes : 0, 1);
}

static uint64_t given_by(const struct bfc_segment_header *header) {
    return header->released_bytes;
}

static uint64_t is_gate_on(const struct bfc_segment_header *header) {
    return header->gate.state == BFC_GATE_COUNTS;
}

static uint64_t is_one_stream(const struct bfc_segment_header *header) {
    return is_gate_on(header) && header->gate.streams < BFC_STREAMS_SEVERAL;
}

static uint64_t gate_seen(const struct bfc_segment_header *header) {
    return header->gate.seen;
}

static uint64_t gate_left(const struct bfc_segment_header *header) {
    return header->gate.left;
}

static uint64_t gate_checks(const struct bfc_segment_header *header) {
    return header->gate.checks;
}

static uint64_t is_asleep(const struct bfc_segment_header *header) {
    return header->sleep.state == BFC_SLEEP_ASLEEP;
}

static uint64_t asleep_since(const struct bfc_segment_header *header) {
    return is_asleep(header) ? header->sleep.since_ns / UINT64_C(1000000000) : 0;
}

static uint64_t sleep_falls(const struct bfc_segment_header *header) {
    return header->sleep.falls;
}

static uint64_t sleep_wakes(const struct bfc_segment_header *header) {
    return header->sleep.wakes;
}

static uint64_t sleep_refused(const struct bfc_segment_header *header) {
    return header->sleep.refused;
}

/* Writes the metrics that have one value for each job rather than for each pool. */
static void put_jobs(const struct metrics *metrics) {
    static const struct {
        const char *name, *type, *help;
        uint64_t (*value)(const struct bfc_segment_header *header);
    } of_jobs[] = {
        {"given_bytes_total", "counter", "Memory given back on request of others.", given_by},
        {"gate_on", "gauge", "Whether the calls that submit work are counted.", is_gate_on},
        {"gate_one_stream", "gauge", "Whether frees need no fence.", is_one_stream},
        {"gate_streams_total", "counter", "Streams that had work.", gate_seen},
        {"gate_left_total", "counter", "Times that it was no longer one stream.", gate_left},
        {"gate_checks_total", "counter", "Checks that no work is unseen.", gate_checks},
        {"asleep", "gauge", "Whether the job is asleep.", is_asleep},
        {"asleep_since_seconds", "gauge", "When it fell asleep, since 1970; 0: it is awake.",
         asleep_since},
        {"sleeps_total", "counter", "Times that the job fell asleep.", sleep_falls},
        {"wakes_total", "counter", "Times that it woke.", sleep_wakes},
        {"wakes_refused_total", "counter", "Times that it could not wake.", sleep_refused},
    };
    for (size_t f = 0; f < sizeof of_jobs / sizeof of_jobs[0]; f++) {
        put_head(metrics, of_jobs[f].name, of_jobs[f].type, of_jobs[f].help);
        for (size_t i = 0; i < metrics->findings->job_count; i++) {
            const struct bfc_job *job = &metrics->findings->jobs[i];
            fprintf(metrics->stream, "bfcpreload_%s", of_jobs[f].name);
            put_job_labels(metrics->findings, job, metrics->stream);
            putc('}', metrics->stream);
            put_value(metrics->stream, of_jobs[f].value(&job->header), 1);
        }
    }
}

/* Writes, for each job that is asleep, how many bytes of its contents are saved, and where. */
static void put_asleep_places(const struct metrics *metrics) {
    const struct findings *findings = metrics->findings;
    put_head(metrics, "asleep_contents_bytes", "gauge",
             "What a job keeps in `where`, memory or a folder, while it is asleep.");
    for (size_t i = 0; i < findings->job_count; i++) {
        const struct bfc_job *job = &findings->jobs[i];
        if (!is_asleep(&job->header))
            continue;
        fputs("bfcpreload_asleep_contents_bytes", metrics->stream);
        put_job_labels(findings, job, metrics->stream);
        put_label(metrics->stream, "where", job->header.sleep.where);
        putc('}', metrics->stream);
        put_value(metrics->stream, job_totals(job).asleep, 1);
    }
}

static void put_coverage(const struct metrics *metrics) {
    const struct findings *findings = metrics->findings;
    put_head(metrics, "forwarded_allocations_total", "counter",
             "Allocations that went to the driver, by reason.");
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_FORWARD_REASONS; k++)
            put_kind(metrics, &findings->jobs[i], "forwarded_allocations_total", "reason",
                     bfc_forward_reason_name((enum bfc_forward_reason)k),
                     findings->jobs[i].header.forwarded_allocations[k]);
    put_head(metrics, "forwarded_frees_total", "counter",
             "Frees that went to the driver, by reason; refused: it had no such memory either.");
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_FORWARD_REASONS; k++)
            put_kind(metrics, &findings->jobs[i], "forwarded_frees_total", "reason",
                     bfc_forward_reason_name((enum bfc_forward_reason)k),
                     findings->jobs[i].header.forwarded_frees[k]);
    put_head(metrics, "bypassed_calls_total", "counter",
             "Allocations that never pass through the pool, by kind.");
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_BYPASS_KINDS; k++)
            put_kind(metrics, &findings->jobs[i], "bypassed_calls_total", "kind",
                     bfc_bypass_kind_name((enum bfc_bypass_kind)k),
                     findings->jobs[i].header.bypassed_calls[k]);
}

static void put_machine(const struct metrics *metrics) {
    const struct findings *findings = metrics->findings;
    put_single(metrics, "jobs", "Jobs that run with bfcpreload and could be read.",
               findings->job_count);
    put_single(metrics, "unreadable_jobs",
               "Jobs beside them that could not be read: other users', or of another version.",
               findings->refused_count);
    put_single(metrics, "left_out_jobs", "Jobs beyond the bound on their number.",
               findings->left_out);
    put_single(metrics, "left_out_pools", "Pools beyond the bound on their number.",
               findings->left_out_pools);
    put_single(metrics, "impostor_segments", "Files that are named as another user's job.",
               findings->impostors);
}

static void put_device_name(const struct metrics *metrics, const char *name, const uint8_t uuid[16],
                            const char *bus_id) {
    char text[GPU_UUID_TEXT];
    fprintf(metrics->stream, "bfcpreload_%s{UUID=\"%s\"", name, gpu_uuid(uuid, text, sizeof text));
    put_label_if(metrics->stream, "pci_bus_id", bus_id);
}

/* Writes a metric that has one value for each device. With `needs_used`, leaves out devices of
 * which it is not known how much memory is used. */
static void put_gpus(const struct metrics *metrics, const char *name, const char *help,
                     uint64_t value(const struct gpu *), bool needs_used) {
    put_head(metrics, name, "gauge", help);
    for (size_t i = 0; i < metrics->findings->gpu_count; i++) {
        const struct gpu *gpu = &metrics->findings->gpus[i];
        if (needs_used && !gpu->used_known)
            continue;
        put_device_name(metrics, name, gpu->uuid, gpu->bus_id);
        putc('}', metrics->stream);
        put_value(metrics->stream, value(gpu), 1);
    }
}

static uint64_t total_of(const struct gpu *gpu) {
    return gpu->total;
}

static uint64_t used_of(const struct gpu *gpu) {
    return gpu->used;
}

static uint64_t in_use_of(const struct gpu *gpu) {
    return gpu->in_use;
}

static uint64_t cached_of(const struct gpu *gpu) {
    return gpu->cached;
}

static void put_all_gpus(const struct metrics *metrics) {
    put_gpus(metrics, "gpu_memory_total_bytes", "Memory of a device.", total_of, false);
    put_gpus(metrics, "gpu_memory_used_bytes", "Memory of it that anybody uses.", used_of, true);
    put_gpus(metrics, "gpu_memory_in_use_bytes", "Blocks that the jobs' programs hold.", in_use_of,
             false);
    put_gpus(metrics, "gpu_memory_cached_bytes", "Memory that the jobs' pools cache.", cached_of,
             false);
    put_gpus(metrics, "gpu_memory_others_bytes",
             "What else is used: by jobs that could not be read, other processes, contexts, code.",
             gpu_others, true);
}

/* Writes counters of what all jobs of a user have done on a device, jobs that have ended
 * included. */
static void put_tallies(const struct metrics *metrics) {
    static const struct {
        const char *name, *help;
    } counts[TALLY_COUNTS] = {
        [TALLY_JOBS_ENDED] = {"user_jobs_ended_total", "Jobs of the user that ended."},
        [TALLY_ALLOCATIONS] = {"user_allocations_total", "Allocations served to the user's jobs."},
        [TALLY_MISSES] = {"user_misses_total", "Of these, those that had to ask the device."},
        [TALLY_RETRIES] = {"user_retries_total", "Of these, those that a last resort saved."},
        [TALLY_OUT_OF_MEMORY] = {"user_out_of_memory_total",
                                 "Allocations of the user's jobs that failed."},
        [TALLY_INVALID_FREES] = {"user_invalid_frees_total", "Double or interior frees."},
    };
    for (size_t k = 0; k < TALLY_COUNTS && metrics->findings->tallies; k++) {
        put_head(metrics, counts[k].name, "counter", counts[k].help);
        for (size_t i = 0; i < metrics->findings->tally_count; i++) {
            const struct tally *tally = &metrics->findings->tallies[i];
            put_device_name(metrics, counts[k].name, tally->uuid, tally->bus_id);
            put_label(metrics->stream, "user", tally->user);
            putc('}', metrics->stream);
            put_value(metrics->stream, tally->counts[k], 1);
        }
    }
}

static void put_all(const struct metrics *metrics) {
    static const struct family waiting = {"waiting_bytes", "gauge",
                                          "Memory that an allocation waits for (BFC_WAIT).", 0, 1};
    put_machine(metrics);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        put_family(metrics, &families[i], false, put_field);
    for (size_t i = 0; i < sizeof spilled / sizeof spilled[0]; i++)
        put_family(metrics, &spilled[i], true, put_field);
    put_derived(metrics);
    put_histograms(metrics);
    put_last_resorts(metrics);
    put_family(metrics, &waiting, false, put_waiting);
    put_jobs(metrics);
    put_asleep_places(metrics);
    put_all_gpus(metrics);
    put_tallies(metrics);
    put_coverage(metrics);
    if (metrics->format == METRICS_OPEN)
        fputs("# EOF\n", metrics->stream);
}

bool show_jobs_metrics(const struct findings *findings, enum metrics_format format, FILE *stream) {
    struct metrics metrics = {.findings = findings, .format = format, .stream = stream};
    bool enough = find_rows(&metrics);
    if (enough)
        put_all(&metrics);
    free_rows(&metrics);
    return enough;
}

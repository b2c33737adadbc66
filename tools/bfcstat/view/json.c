/* bfcstat's JSON. The keys are documented in docs/bfcstat.md and stay as they are. */
#include "tools/bfcstat/view/json_detail.h"
#include "tools/bfcstat/view/view.h"

#include <string.h>

/* Version of the JSON format. Since version 2 the key `fragmentation` has another meaning. */
#define JSON_FORMAT 2

static void put_device(struct json_writer *json, const struct bfc_segment_pool *pool) {
    char text[GPU_UUID_TEXT];
    json_signed(json, "device", pool->device);
    json_string(json, "device_name", pool->device_name);
    if (bfc_pool_is_host(pool))
        json_null(json, "device_uuid");
    else
        json_string(json, "device_uuid", gpu_uuid(pool->device_uuid, text, sizeof text));
    if (*gpu_bus_id(pool->device_bus_id, text, sizeof text))
        json_string(json, "device_bus_id", text);
    else
        json_null(json, "device_bus_id");
}

static void put_memory(struct json_writer *json, const struct bfc_segment_pool *pool) {
    const struct bfc_pool_stats *stats = &pool->stats;
    put_amounts(json, pool);
    json_unsigned(json, "cached", bfc_pool_cached(stats));
    json_unsigned(json, "regions", stats->regions);
    json_unsigned(json, "blocks", stats->blocks);
    json_unsigned(json, "peak_requested", stats->peak_requested);
}

static void put_pages(struct json_writer *json, const struct bfc_segment_pool *pool) {
    const struct bfc_segment_pages *pages = &pool->pages;
    if (!pages->calls) {
        json_null(json, "pages");
        return;
    }
    json_object(json, "pages");
    json_unsigned(json, "addresses", pages->addresses);
    json_unsigned(json, "backed", bfc_pages_backed(pages));
    json_unsigned(json, "ready", pages->ready);
    json_unsigned(json, "pinned", pages->pinned);
    json_unsigned(json, "created", pages->created);
    json_unsigned(json, "moved", bfc_pages_moved(pages));
    json_unsigned(json, "released", pages->released);
    json_unsigned(json, "calls", pages->calls);
    json_unsigned(json, "asleep", pages->asleep);
    json_object_end(json);
}

static void put_counters(struct json_writer *json, const struct bfc_pool_stats *stats) {
    json_unsigned(json, "allocations", stats->allocations);
    json_unsigned(json, "frees", stats->frees);
    json_unsigned(json, "hits", stats->hits);
    json_unsigned(json, "misses", stats->misses);
    put_share(json, "hit_rate", bfc_pool_hit_rate(stats));
    json_unsigned(json, "splits", stats->splits);
    json_unsigned(json, "merges", stats->merges);
    json_unsigned(json, "reserve_calls", stats->reserve_calls);
    json_unsigned(json, "refusals", stats->refusals);
    json_unsigned(json, "release_calls", stats->release_calls);
    json_unsigned(json, "waits", stats->waits);
    json_unsigned(json, "wait_ns", stats->wait_ns);
    json_unsigned(json, "retries", stats->retries);
    json_unsigned(json, "out_of_memory", stats->out_of_memory);
    json_unsigned(json, "invalid_frees", stats->invalid_frees);
    json_unsigned(json, "pending_reuses", stats->pending_reuses);
}

static void put_divergence(struct json_writer *json, const struct bfc_segment_plan *plan) {
    if (!plan->came) {
        json_null(json, "divergence");
        return;
    }
    json_object(json, "divergence");
    json_unsigned(json, "number", plan->divergence);
    json_unsigned(json, "expected", plan->expected);
    json_unsigned(json, "came", plan->came);
    json_unsigned(json, "at_ns", plan->diverged_ns);
    json_object_end(json);
}

static void put_plan(struct json_writer *json, const struct bfc_segment_pool *pool) {
    const struct bfc_segment_plan *plan = &pool->plan;
    if (!plan->peak) {
        json_null(json, "plan");
        return;
    }
    json_object(json, "plan");
    json_string(json, "source", bfc_plan_source_name(plan->source));
    json_unsigned(json, "prefix", plan->prefix);
    json_unsigned(json, "period", plan->period);
    json_unsigned(json, "periods", plan->periods);
    json_unsigned(json, "bound", plan->bound);
    json_unsigned(json, "peak", plan->peak);
    json_unsigned(json, "memory", plan->memory);
    if (plan->before)
        json_unsigned(json, "reserved_before", plan->before);
    else
        json_null(json, "reserved_before");
    json_unsigned(json, "followed", plan->followed);
    json_unsigned(json, "unplanned", plan->unplanned);
    json_unsigned(json, "missed", plan->missed);
    json_unsigned(json, "busy", plan->busy);
    json_unsigned(json, "resumed", plan->resumed);
    json_unsigned(json, "lost", plan->lost);
    put_divergence(json, plan);
    json_object_end(json);
}

static void put_last_resorts(struct json_writer *json, const struct bfc_segment_pool *pool) {
    json_object(json, "last_resorts");
    for (unsigned i = 0; i < BFC_RUNGS; i++) {
        const char *name = bfc_rung_name((enum bfc_rung)i);
        struct bfc_rung_counts counts = bfc_pool_rung(pool, (enum bfc_rung)i);
        if (!name)
            continue;
        json_object(json, name);
        json_unsigned(json, "tried", counts.climbed);
        json_unsigned(json, "saved", counts.saved);
        json_unsigned(json, "ns", counts.ns);
        json_object_end(json);
    }
    json_object_end(json);
}

static void put_waiting(struct json_writer *json, const struct bfc_waiter *waiter) {
    if (!waiter) {
        json_null(json, "waiting");
        return;
    }
    json_object(json, "waiting");
    json_unsigned(json, "bytes", waiter->bytes);
    json_unsigned(json, "waited_ns", waited_ns(waiter));
    json_unsigned(json, "position", waiter->position);
    json_object_end(json);
}

static void put_pool(struct json_writer *json, const struct bfc_job *job, unsigned index) {
    const struct bfc_segment_pool *pool = &job->pools[index];
    bool torn = job->torn >> index & 1;
    json_object(json, NULL);
    json_string(json, "state", pool->state == BFC_POOL_ACTIVE ? "active" : "ended");
    json_boolean(json, "consistent", !torn);
    json_string(json, "memory", bfc_pool_is_host(pool) ? "host" : "device");
    put_device(json, pool);
    json_unsigned(json, "device_total", pool->device_total);
    if (pool->device_free_ns)
        json_unsigned(json, "device_free", pool->device_free);
    else
        json_null(json, "device_free");
    json_unsigned(json, "context", pool->context_id);
    put_memory(json, pool);
    put_pages(json, pool);
    put_plan(json, pool);
    put_counters(json, &pool->stats);
    json_unsigned(json, "host_waits", pool->host_waits);
    json_unsigned(json, "host_wait_ns", pool->host_wait_ns);
    json_unsigned(json, "fences", pool->fences);
    json_unsigned(json, "device_waits", pool->device_waits);
    put_last_resorts(json, pool);
    put_waiting(json, job_waiter(job, index));
    put_histograms(json, pool);
    json_object_end(json);
}

static void put_totals(struct json_writer *json, const struct bfc_job *job) {
    struct job_totals totals = job_totals(job);
    uint64_t all = totals.hits + totals.misses;
    json_object(json, "totals");
    json_unsigned(json, "in_use", totals.in_use);
    json_unsigned(json, "requested", totals.requested);
    json_unsigned(json, "cached", totals.cached);
    json_unsigned(json, "reserved", totals.reserved);
    json_unsigned(json, "asleep", totals.asleep);
    json_unsigned(json, "spilled", totals.spilled);
    json_unsigned(json, "spilled_blocks", totals.spilled_blocks);
    put_share(json, "hit_rate", all ? (double)totals.hits / (double)all : -1);
    json_unsigned(json, "host_waits", totals.host_waits);
    json_unsigned(json, "waits", totals.waits);
    json_unsigned(json, "out_of_memory", totals.out_of_memory);
    json_object_end(json);
}

/* Writes an object with a count for each kind. Kinds without a name, which this bfcstat is too old
 * to know, are added up under "other". */
static void put_kinds(struct json_writer *json, const char *key, const uint64_t *counts,
                      unsigned count, const char *(*name)(unsigned)) {
    uint64_t other = 0;
    json_object(json, key);
    for (unsigned i = 0; i < count; i++) {
        if (name(i))
            json_unsigned(json, name(i), counts[i]);
        else
            other += counts[i];
    }
    json_unsigned(json, "other", other);
    json_object_end(json);
}

static const char *forward_key(unsigned number) {
    return bfc_forward_reason_name((enum bfc_forward_reason)number);
}

static const char *bypass_key(unsigned number) {
    return bfc_bypass_kind_name((enum bfc_bypass_kind)number);
}

static void put_coverage(struct json_writer *json, const struct bfc_job *job) {
    const struct bfc_segment_header *header = &job->header;
    struct bfc_pooled_calls pooled = bfc_job_pooled(job);
    json_object(json, "coverage");
    json_unsigned(json, "pooled_allocations", pooled.allocations);
    json_unsigned(json, "pooled_frees", pooled.frees);
    put_kinds(json, "forwarded_allocations", header->forwarded_allocations, BFC_FORWARD_REASONS,
              forward_key);
    put_kinds(json, "forwarded_frees", header->forwarded_frees, BFC_FORWARD_REASONS, forward_key);
    put_kinds(json, "bypassed_calls", header->bypassed_calls, BFC_BYPASS_KINDS, bypass_key);
    put_kinds(json, "bypassed_bytes", header->bypassed_bytes, BFC_BYPASS_KINDS, bypass_key);
    json_string(json, "advice", coverage_advice(job) ? coverage_advice(job) : "");
    json_object_end(json);
}

static void put_gate(struct json_writer *json, const struct bfc_segment_gate *gate) {
    static const char *const states[] = {
        [BFC_GATE_NOT_USED] = "not_used", [BFC_GATE_COUNTS] = "on", [BFC_GATE_GIVEN_UP] = "off"};
    static const char *const streams[] = {[BFC_STREAMS_NONE] = "none",
                                          [BFC_STREAMS_ONE] = "one",
                                          [BFC_STREAMS_ORDERED] = "ordered",
                                          [BFC_STREAMS_SEVERAL] = "several"};
    json_object(json, "gate");
    json_string(json, "state", gate->state <= BFC_GATE_GIVEN_UP ? states[gate->state] : "other");
    if (gate->state == BFC_GATE_COUNTS && gate->streams <= BFC_STREAMS_SEVERAL)
        json_string(json, "streams", streams[gate->streams]);
    else
        json_null(json, "streams");
    json_unsigned(json, "seen", gate->seen);
    json_unsigned(json, "left", gate->left);
    json_unsigned(json, "checks", gate->checks);
    json_string(json, "why", gate->why);
    json_object_end(json);
}

static void put_configuration(struct json_writer *json, const struct bfc_segment_header *header) {
    json_object(json, "configuration");
    for (const char *line = header->configuration; *line;) {
        char name[128];
        size_t length = strcspn(line, "\n"), name_length = strcspn(line, "=\n");
        snprintf(name, sizeof name, "%.*s", (int)name_length, line);
        if (name_length < length)
            json_string_n(json, name, line + name_length + 1, length - name_length - 1);
        line += length + (line[length] == '\n');
    }
    json_object_end(json);
    json_unsigned(json, "configuration_errors", header->configuration_errors);
    json_string(json, "complaints", header->complaints);
}

static void put_job(struct json_writer *json, const struct bfc_job *job) {
    const struct bfc_segment_header *header = &job->header;
    json_string(json, "segment", job->name.text);
    json_signed(json, "pid", header->pid);
    json_unsigned(json, "pid_namespace", header->pid_namespace);
    json_unsigned(json, "uid", header->uid);
    json_string(json, "state", job_state_name(job->state));
    json_string(json, "command", header->command);
    json_string(json, "library", header->library);
    json_unsigned(json, "created_ns", header->created_ns);
    put_rank(json, header);
    put_totals(json, job);
    json_array(json, "pools");
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (job->pools[i].state != BFC_POOL_UNUSED)
            put_pool(json, job, i);
    json_array_end(json);
    put_gate(json, &header->gate);
    put_sleep(json, job);
    put_coverage(json, job);
    put_configuration(json, header);
}

void show_job_json(const struct bfc_job *job, FILE *stream) {
    struct json_writer json = json_writer_init(stream);
    json_object(&json, NULL);
    json_unsigned(&json, "format", JSON_FORMAT);
    put_job(&json, job);
    put_map(&json, job);
    put_events(&json, "landmarks", job->landmarks, job->landmark_count);
    put_events(&json, "events", job->events, job->event_count);
    json_object_end(&json);
}

static void put_refused(struct json_writer *json, const char *line) {
    const char *colon = strchr(line, ':');
    json_object(json, NULL);
    json_string_n(json, "segment", line, (size_t)(colon - line));
    json_string(json, "reason", colon + 2);
    json_object_end(json);
}

void show_jobs_json(const struct findings *findings, FILE *stream) {
    struct json_writer json = json_writer_init(stream);
    json_object(&json, NULL);
    json_unsigned(&json, "format", JSON_FORMAT);
    json_array(&json, "jobs");
    for (size_t i = 0; i < findings->job_count; i++) {
        json_object(&json, NULL);
        put_job(&json, &findings->jobs[i]);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_array(&json, "refused");
    for (size_t i = 0; i < findings->refused_count; i++)
        put_refused(&json, findings->refused[i].line);
    json_array_end(&json);
    json_array(&json, "swept");
    for (size_t i = 0; i < findings->swept_count; i++)
        json_string(&json, NULL, findings->swept[i].text);
    json_array_end(&json);
    json_object_end(&json);
}

/* bfcstat's plain text: the table of jobs, and one job in full. */
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/config/options.h"
#include "tools/bfcstat/view/view.h"
#include "tools/text/print_text.h"

#define LABEL_WIDTH 15

static void print_label(FILE *stream, const char *name) {
    fprintf(stream, "  %-*s", LABEL_WIDTH, name);
}

static const char *find_configured(const struct bfc_job *job, const char *name, char *text,
                                   size_t size) {
    size_t length;
    const char *value = bfc_job_configured(job, name, &length);
    snprintf(text, size, "%.*s", value ? (int)length : 1, value ? value : "-");
    return text;
}

/* Writes what the column of commands shows of a job: its user if that is not who runs bfcstat,
 * whether it is asleep or waits for memory, its rank and its command: "alice: waits for 3.20 GiB
 * for 12.0 s, position 2: rank 3 of 4: train.py". `pool` is the row's pool, or NULL. */
static const char *command_of(const struct findings *findings, const struct bfc_job *job,
                              const struct bfc_segment_pool *pool, char *text, size_t size) {
    const struct bfc_segment_header *header = &job->header;
    const struct bfc_waiter *waiter = pool ? job_waiter(job, (unsigned)(pool - job->pools)) : NULL;
    const char *other = other_user(findings, job);
    char waiting[WAITER_TEXT], user[72] = "", rank[48] = "", command[256], asleep[SLEEP_TEXT];
    if (other)
        snprintf(user, sizeof user, "%s: ", other);
    if (header->rank >= 0 && header->ranks > 0)
        snprintf(rank, sizeof rank, "rank %" PRId32 " of %" PRId32 ": ", header->rank,
                 header->ranks);
    else if (header->rank >= 0)
        snprintf(rank, sizeof rank, "rank %" PRId32 ": ", header->rank);
    job_sleep_text(job, pool, asleep, sizeof asleep);
    snprintf(text, size, "%s%s%s%s%s%s%s", user, asleep, *asleep ? ": " : "",
             waiter_text(waiter, waiting, sizeof waiting), waiter ? ": " : "", rank,
             job_command(job, command, sizeof command));
    return text;
}

/* Returns the value of the setting that bounds the pool's memory: BFC_SPILL for host memory, else
 * BFC_LIMIT; "-" if it is not set. */
static const char *limit_of(const struct bfc_job *job, const struct bfc_segment_pool *pool,
                            char *text, size_t size) {
    bool host = pool && bfc_pool_is_host(pool);
    return find_configured(job, host ? "BFC_SPILL" : "BFC_LIMIT", text, size);
}

/* On a terminal with fewer columns than this, the table leaves out values that `bfcstat PID` shows
 * as well, so that there is room for the jobs' commands. */
#define WIDE 110u

enum column { PID, BUS_ID, UUID, IN_USE, CACHED, RESERVED, LIMIT, HIT_RATE, WAITS, OOM, COMMAND };
static const enum column narrow[] = {PID, BUS_ID, UUID, IN_USE, CACHED, OOM, COMMAND};
#define COLUMNS (COMMAND + 1)
#define NARROW_COLUMNS (sizeof narrow / sizeof narrow[0])

/* Adds a row to the table of jobs. `cells` has all columns; a table for a narrow terminal takes
 * only some of them. */
static int add_cells(struct text_table *table, const char *const cells[COLUMNS]) {
    const char *some[NARROW_COLUMNS];
    for (size_t i = 0; i < NARROW_COLUMNS; i++)
        some[i] = cells[narrow[i]];
    return text_table_add(table, table->columns == COLUMNS ? cells : some);
}

static int add_row(struct text_table *table, const struct findings *findings,
                   const struct bfc_job *job, const struct bfc_segment_pool *pool) {
    const struct bfc_pool_stats *stats = &pool->stats;
    char pid[TEXT_FIGURE], bus_id[GPU_SHORT_TEXT], uuid[GPU_SHORT_TEXT], in_use[TEXT_FIGURE],
        cached[TEXT_FIGURE], reserved[TEXT_FIGURE], limit[TEXT_FIGURE], hit_rate[TEXT_FIGURE],
        waits[TEXT_FIGURE], failures[TEXT_FIGURE], command[TEXT_CELL];
    snprintf(pid, sizeof pid, "%" PRId32, job->header.pid);
    const char *const cells[COLUMNS] = {
        pid,
        pool_bus_id(pool, bus_id, sizeof bus_id),
        pool_uuid(pool, uuid, sizeof uuid),
        bfc_bytes_text(stats->in_use, in_use, sizeof in_use),
        bfc_bytes_text(bfc_pool_cached(stats), cached, sizeof cached),
        bfc_bytes_text(pool_held(pool), reserved, sizeof reserved),
        limit_of(job, pool, limit, sizeof limit),
        bfc_share_text(bfc_pool_hit_rate(stats), hit_rate, sizeof hit_rate),
        text_count(pool->host_waits + stats->waits, waits, sizeof waits),
        text_count(stats->out_of_memory, failures, sizeof failures),
        command_of(findings, job, pool, command, sizeof command),
    };
    return add_cells(table, cells);
}

static int add_row_without_pool(struct text_table *table, const struct findings *findings,
                                const struct bfc_job *job) {
    char pid[TEXT_FIGURE], limit[TEXT_FIGURE], command[TEXT_CELL];
    snprintf(pid, sizeof pid, "%" PRId32, job->header.pid);
    const char *const cells[COLUMNS] = {pid,
                                        "-",
                                        "-",
                                        "-",
                                        "-",
                                        "-",
                                        limit_of(job, NULL, limit, sizeof limit),
                                        "-",
                                        "-",
                                        "-",
                                        command_of(findings, job, NULL, command, sizeof command)};
    return add_cells(table, cells);
}

static int add_job(struct text_table *table, const struct findings *findings,
                   const struct bfc_job *job) {
    int failed = 0, rows = 0;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS && !failed; i++) {
        if (job->pools[i].state != BFC_POOL_ACTIVE)
            continue;
        failed = add_row(table, findings, job, &job->pools[i]);
        rows++;
    }
    return rows ? failed : add_row_without_pool(table, findings, job);
}

void show_jobs_text(const struct findings *findings, size_t width, FILE *stream) {
    static const char *const heads[COLUMNS] = {"PID",    "BUS ID",   "UUID",   "IN USE",
                                               "CACHED", "RESERVED", "LIMIT",  "HIT RATE",
                                               "WAITS",  "OOM",      "COMMAND"};
    bool whole = width == 0 || width >= WIDE;
    struct text_table table = {.columns = whole ? COLUMNS : NARROW_COLUMNS,
                               .right = whole ? 0x3F9 : 0x39};
    if (findings->job_count == 0) {
        fputs(findings->refused_count ? "no jobs that could be read\n" : "no jobs\n", stream);
        return;
    }
    int failed = add_cells(&table, heads);
    for (size_t i = 0; i < findings->job_count && !failed; i++)
        failed = add_job(&table, findings, &findings->jobs[i]);
    if (failed)
        fputs("bfcstat: no memory for the whole table\n", stderr);
    text_table_print(&table, stream, width);
    text_table_free(&table);
}

static void show_times(const struct bfc_segment_header *header, enum bfc_job_state state,
                       FILE *stream) {
    uint64_t now_ns = bfc_wall_clock_ns();
    time_t created = (time_t)(header->created_ns / 1000000000u);
    char stamp[64] = "?", age[TEXT_FIGURE] = "";
    struct tm parts;
    if (localtime_r(&created, &parts))
        strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &parts);
    if (state == BFC_JOB_RUNNING && now_ns > header->created_ns)
        text_duration(now_ns - header->created_ns, age, sizeof age);
    print_label(stream, "state");
    fprintf(stream, "%s, first allocation %s%s%s%s\n", job_state_name(state), stamp,
            *age ? " (" : "", age, *age ? " ago)" : "");
}

static void show_rank(const struct bfc_segment_header *header, FILE *stream) {
    char job[128];
    if (header->rank < 0)
        return;
    print_label(stream, "rank");
    fprintf(stream, "%" PRId32, header->rank);
    if (header->ranks > 0)
        fprintf(stream, " of %" PRId32, header->ranks);
    if (header->local_rank >= 0)
        fprintf(stream, ", %" PRId32 " on this machine", header->local_rank);
    if (header->job[0])
        fprintf(stream, ", job %s", text_printable(header->job, job, sizeof job));
    fputc('\n', stream);
}

static void show_identity(const struct bfc_job *job, FILE *stream) {
    const struct bfc_segment_header *header = &job->header;
    char command[512], library[64];
    struct passwd *user = getpwuid(header->uid);
    fprintf(stream, "%" PRId32 "  %s\n", header->pid,
            text_printable(header->command, command, sizeof command));
    show_times(header, job->state, stream);
    print_label(stream, "user");
    fprintf(stream, "%s (%" PRIu32 "), bfcpreload %s\n", user ? user->pw_name : "?", header->uid,
            text_printable(header->library, library, sizeof library));
    show_rank(header, stream);
}

static void show_amount(FILE *stream, const char *name, uint64_t bytes) {
    char figure[TEXT_FIGURE];
    print_label(stream, name);
    fprintf(stream, "%10s", bfc_bytes_text(bytes, figure, sizeof figure));
}

static void show_peak(FILE *stream, uint64_t bytes) {
    char figure[TEXT_FIGURE];
    fprintf(stream, "   (most %s)", bfc_bytes_text(bytes, figure, sizeof figure));
}

static void show_fragmentation(const struct bfc_segment_pool *pool, FILE *stream) {
    double share = bfc_pool_fragmentation(pool);
    char figure[TEXT_FIGURE];
    show_amount(stream, "largest free", pool->stats.largest_free);
    fputc('\n', stream);
    print_label(stream, "fragmentation");
    fprintf(stream, "%10s", bfc_share_text(share, figure, sizeof figure));
    if (share < 0)
        fputs("   the job has not measured it yet\n", stream);
    else if (pool->stats.in_use == 0)
        fputs("   nothing is in use\n", stream);
    else if (pool->stats.ready == 0)
        fputs("   nothing is ready\n", stream);
    else
        fprintf(stream, "   of ready cannot serve %s, asked for lately\n",
                bfc_bytes_text(pool->fit.request, figure, sizeof figure));
}

static void show_memory(const struct bfc_segment_pool *pool, FILE *stream) {
    const struct bfc_pool_stats *stats = &pool->stats;
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    show_amount(stream, "in use", stats->in_use);
    show_peak(stream, stats->peak_in_use);
    fprintf(stream, " in %s block%s\n", text_count(stats->blocks, a, sizeof a),
            bfc_plural(stats->blocks));
    show_amount(stream, "requested", stats->requested);
    show_peak(stream, stats->peak_requested);
    fputc('\n', stream);
    show_amount(stream, "cached", bfc_pool_cached(stats));
    fprintf(stream, "   ready %s, pending %s\n", bfc_bytes_text(stats->ready, a, sizeof a),
            bfc_bytes_text(stats->pending, b, sizeof b));
    if (stats->deferred) {
        print_label(stream, "");
        fprintf(stream, "%13sdeferred %s, freed during a capture\n", "",
                bfc_bytes_text(stats->deferred, a, sizeof a));
    }
    show_amount(stream, "reserved", pool_held(pool));
    show_peak(stream, stats->peak_reserved);
    fprintf(stream, " in %s region%s\n", text_count(stats->regions, a, sizeof a),
            bfc_plural(stats->regions));
    if (pool->pages.asleep) {
        show_amount(stream, "asleep", pool->pages.asleep);
        fputs("   not on the device\n", stream);
    }
    show_fragmentation(pool, stream);
}

static void show_page_state(const struct bfc_segment_pool *pool, FILE *stream) {
    const struct bfc_segment_pages *pages = &pool->pages;
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    if (!pages->looked_ns)
        return;
    uint64_t backed = bfc_pages_backed(pages), ready = bfc_min(pages->ready, backed);
    print_label(stream, "");
    fprintf(stream, "%13sready to move %s, behind blocks %s", "",
            bfc_bytes_text(ready, a, sizeof a), bfc_bytes_text(backed - ready, b, sizeof b));
    if (pages->pinned)
        fprintf(stream, ", shown to others %s", bfc_bytes_text(pages->pinned, a, sizeof a));
    fputc('\n', stream);
}

static void show_pages(const struct bfc_segment_pool *pool, FILE *stream) {
    const struct bfc_segment_pages *pages = &pool->pages;
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    if (!pages->calls)
        return;
    show_amount(stream, "pages", bfc_pages_backed(pages));
    fprintf(stream, "   behind %s of addresses; %s driver calls so far; moved %s\n",
            bfc_bytes_text(pages->addresses, a, sizeof a),
            text_count(pages->calls, (char[TEXT_FIGURE]){0}, TEXT_FIGURE),
            bfc_bytes_text(bfc_pages_moved(pages), b, sizeof b));
    show_page_state(pool, stream);
}

static void show_divergence(const struct bfc_segment_plan *plan, FILE *stream) {
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    if (!plan->came)
        return;
    print_label(stream, "");
    fprintf(stream, "%13slast difference: %s came, where allocation %" PRIu64 " was to be %s\n", "",
            bfc_bytes_text(plan->came, a, sizeof a), plan->divergence,
            bfc_bytes_text(plan->expected, b, sizeof b));
}

/* Shows how much memory the pool had reserved before it first followed a plan (fixed addresses for
 * the allocations of a loop), and how much it reserves now. */
static void show_saved(const struct bfc_segment_pool *pool, FILE *stream) {
    const struct bfc_segment_plan *plan = &pool->plan;
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    if (plan->source != BFC_PLAN_OF_LOOP || !plan->memory || !plan->before)
        return;
    print_label(stream, "");
    fprintf(stream, "%13sreserved %s before its first plan, %s now\n", "",
            bfc_bytes_text(plan->before, a, sizeof a),
            bfc_bytes_text(pool->stats.reserved, b, sizeof b));
}

static void show_plan(const struct bfc_segment_pool *pool, FILE *stream) {
    const struct bfc_segment_plan *plan = &pool->plan;
    char a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE];
    if (!plan->peak)
        return;
    show_amount(stream, "plan", plan->memory);
    fprintf(stream, "   %s%s (bound %s), ", plan->source ? "of " : "left; it was of ",
            plan->source == BFC_PLAN_OF_LOOP ? "this job" : "a file",
            bfc_bytes_text(plan->bound, a, sizeof a));
    if (plan->period)
        fprintf(stream, "period %s allocation%s\n", text_count(plan->period, b, sizeof b),
                bfc_plural(plan->period));
    else
        fprintf(stream, "no period: %s allocation%s once\n", text_count(plan->prefix, b, sizeof b),
                bfc_plural(plan->prefix));
    print_label(stream, "");
    fprintf(stream, "%13sfollowed %s, missed %s", "", text_count(plan->followed, a, sizeof a),
            text_count(plan->missed, b, sizeof b));
    if (plan->unplanned)
        fprintf(stream, ", without a place %s", text_count(plan->unplanned, c, sizeof c));
    if (plan->lost)
        fprintf(stream, ", lost %s times", text_count(plan->lost, c, sizeof c));
    fputc('\n', stream);
    show_saved(pool, stream);
    show_divergence(plan, stream);
}

static void show_device_free(const struct bfc_segment_pool *pool, FILE *stream) {
    if (pool->device_free_ns == 0)
        return;
    show_amount(stream, "free by driver", pool->device_free);
    fputs("   when the job last asked\n", stream);
}

static void show_count(FILE *stream, const char *name, uint64_t count) {
    char figure[TEXT_FIGURE];
    print_label(stream, name);
    fprintf(stream, "%10s", text_count(count, figure, sizeof figure));
}

static void show_waits(const struct bfc_segment_pool *pool, FILE *stream) {
    char figure[TEXT_FIGURE];
    show_count(stream, "host waits", pool->host_waits);
    fprintf(stream, "   for frees, %s in all\n",
            text_duration(pool->host_wait_ns, figure, sizeof figure));
    if (pool->stats.waits == 0)
        return;
    show_count(stream, "fence waits", pool->stats.waits);
    fprintf(stream, "   by the pool, %s in all\n",
            text_duration(pool->stats.wait_ns, figure, sizeof figure));
}

/* Shows a counter, and by how much it has risen in a second on average since the job's first
 * allocation. */
static void show_rate(FILE *stream, const struct bfc_job *job, const char *name, uint64_t count) {
    uint64_t now_ns = bfc_wall_clock_ns(), since_ns = job->header.created_ns;
    char figure[TEXT_FIGURE];
    show_count(stream, name, count);
    if (job->state != BFC_JOB_RUNNING || now_ns <= since_ns)
        return;
    double rate = (double)count * 1e9 / (double)(now_ns - since_ns);
    if (rate < 100)
        fprintf(stream, "   %.3g a second", rate);
    else
        fprintf(stream, "   %s a second",
                text_count((uint64_t)(rate + 0.5), figure, sizeof figure));
}

/* Shows how many fences (CUDA events) the library has recorded, and how often it made the device
 * wait for one. Nothing is shown if there were none, as when all work goes to one stream. */
static void show_fences(const struct bfc_job *job, const struct bfc_segment_pool *pool,
                        FILE *stream) {
    if (!pool->fences && !pool->device_waits)
        return;
    show_rate(stream, job, "fences", pool->fences);
    fputs(", for frees, trims and sleep\n", stream);
    show_rate(stream, job, "device waits", pool->device_waits);
    fputs(", for fences\n", stream);
}

static void show_driver(const struct bfc_segment_pool *pool, FILE *stream) {
    const struct bfc_pool_stats *stats = &pool->stats;
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    show_count(stream, "driver calls", bfc_pool_driver_calls(pool));
    fprintf(stream, "   %s to reserve (%s refused)", text_count(stats->reserve_calls, a, sizeof a),
            text_count(stats->refusals, b, sizeof b));
    fprintf(stream, ", %s to release\n", text_count(stats->release_calls, a, sizeof a));
}

/* Shows what was tried after the device had refused memory, such as asking other jobs to give some
 * back: for each of these attempts, how often it helped, how often it was made, and how long it
 * took. */
static void show_last_resorts(const struct bfc_segment_pool *pool, FILE *stream) {
    static const char *const names[BFC_RUNGS] = {
        [BFC_RUNG_POOL] = "this pool gave",  [BFC_RUNG_CONTEXTS] = "contexts gave",
        [BFC_RUNG_JOBS] = "other jobs gave", [BFC_RUNG_SLEEP] = "others slept",
        [BFC_RUNG_WAIT] = "waited",          [BFC_RUNG_SPILL] = "spilled",
    };
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    for (unsigned i = 0; i < BFC_RUNGS; i++) {
        struct bfc_rung_counts counts = bfc_pool_rung(pool, (enum bfc_rung)i);
        if (!counts.climbed || !names[i])
            continue;
        show_count(stream, names[i], counts.saved);
        fprintf(stream, "   of %s attempt%s, %s in all\n", text_count(counts.climbed, a, sizeof a),
                bfc_plural(counts.climbed), text_duration(counts.ns, b, sizeof b));
    }
}

static void show_calls(const struct bfc_job *job, const struct bfc_segment_pool *pool,
                       FILE *stream) {
    const struct bfc_pool_stats *stats = &pool->stats;
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    show_count(stream, "allocations", stats->allocations);
    fputc('\n', stream);
    show_count(stream, "frees", stats->frees);
    fputc('\n', stream);
    print_label(stream, "hit rate");
    fprintf(stream, "%10s", bfc_share_text(bfc_pool_hit_rate(stats), a, sizeof a));
    fprintf(stream, "   %s hit%s, %s miss%s\n", text_count(stats->hits, a, sizeof a),
            bfc_plural(stats->hits), text_count(stats->misses, b, sizeof b),
            stats->misses == 1 ? "" : "es");
    show_waits(pool, stream);
    show_fences(job, pool, stream);
    show_driver(pool, stream);
    show_count(stream, "out of memory", stats->out_of_memory);
    fprintf(stream, "   and %s saved by last resorts\n", text_count(stats->retries, a, sizeof a));
    show_last_resorts(pool, stream);
    if (stats->invalid_frees) {
        show_count(stream, "invalid frees", stats->invalid_frees);
        fputs("   double or interior\n", stream);
    }
}

static void show_pool(const struct bfc_job *job, unsigned index, FILE *stream) {
    const struct bfc_segment_pool *pool = &job->pools[index];
    char name[128], total[TEXT_FIGURE], bus_id[GPU_SHORT_TEXT], uuid[GPU_SHORT_TEXT];
    fprintf(stream, "\ndevice %" PRId64 " (%s %s)  %s, %s%s, context %" PRIu64 "%s\n", pool->device,
            pool_bus_id(pool, bus_id, sizeof bus_id), pool_uuid(pool, uuid, sizeof uuid),
            text_printable(pool->device_name, name, sizeof name),
            bfc_pool_is_host(pool) ? "spilled to host memory (BFC_SPILL), at most " : "",
            bfc_bytes_text(pool->device_total, total, sizeof total), pool->context_id,
            pool->state == BFC_POOL_ENDED ? " (has ended)" : "");
    if (job->torn >> index & 1)
        fputs("  (these figures are not all of one moment: the job was writing them)\n", stream);
    if (job_waiter(job, index)) {
        char waiting[WAITER_TEXT];
        fprintf(stream, "  it %s\n", waiter_text(job_waiter(job, index), waiting, sizeof waiting));
    }
    show_memory(pool, stream);
    show_pages(pool, stream);
    show_plan(pool, stream);
    show_device_free(pool, stream);
    show_calls(job, pool, stream);
}

/* Returns a kind's name with blanks for '_'. If `known` is NULL, because this bfcstat is older than
 * the job's library and does not know the kind, returns `what` and the number, such as "reason
 * 9". */
static const char *kind_name(const char *known, const char *what, unsigned number, char *text,
                             size_t size) {
    if (known)
        snprintf(text, size, "%s", known);
    else
        snprintf(text, size, "%s %u", what, number);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return text;
}

static void show_forwarded(const struct bfc_segment_header *header, FILE *stream) {
    char name[64], a[TEXT_FIGURE], b[TEXT_FIGURE];
    for (unsigned i = 0; i < BFC_FORWARD_REASONS; i++)
        if (header->forwarded_allocations[i] || header->forwarded_frees[i])
            fprintf(stream, "  forwarded, %-15s %s allocation%s, %s free%s\n",
                    kind_name(bfc_forward_reason_name((enum bfc_forward_reason)i), "reason", i,
                              name, sizeof name),
                    text_count(header->forwarded_allocations[i], a, sizeof a),
                    bfc_plural(header->forwarded_allocations[i]),
                    text_count(header->forwarded_frees[i], b, sizeof b),
                    bfc_plural(header->forwarded_frees[i]));
}

static void show_bypassed(const struct bfc_segment_header *header, FILE *stream) {
    char name[64], a[TEXT_FIGURE], b[TEXT_FIGURE];
    for (unsigned i = 0; i < BFC_BYPASS_KINDS; i++)
        if (header->bypassed_calls[i])
            fprintf(stream, "  bypassed, %-16s %s call%s, %s\n",
                    kind_name(bfc_bypass_kind_name((enum bfc_bypass_kind)i), "kind", i, name,
                              sizeof name),
                    text_count(header->bypassed_calls[i], a, sizeof a),
                    bfc_plural(header->bypassed_calls[i]),
                    bfc_bytes_text(header->bypassed_bytes[i], b, sizeof b));
}

/* Shows whether frees need fences (BFC_GATE): they do not while all work of the process goes to one
 * stream, or to streams that wait for each other. */
static void show_gate(const struct bfc_segment_header *header, FILE *stream) {
    static const char *const streams[] = {
        [BFC_STREAMS_NONE] = "no stream yet: frees need no fence",
        [BFC_STREAMS_ONE] = "one stream: frees need no fence",
        [BFC_STREAMS_ORDERED] = "the legacy stream and one that waits for it: frees need no fence",
        [BFC_STREAMS_SEVERAL] = "several streams: frees need fences",
    };
    const struct bfc_segment_gate *gate = &header->gate;
    char why[2 * sizeof gate->why], a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE];
    fprintf(stream, "\n%-*s  ", LABEL_WIDTH, "gate");
    if (gate->state == BFC_GATE_NOT_USED) {
        fputs("not used (BFC_GATE)\n", stream);
        return;
    }
    if (gate->state == BFC_GATE_GIVEN_UP)
        fprintf(stream, "off, since work may be submitted unseen: %s\n",
                text_printable(gate->why, why, sizeof why));
    else
        fprintf(stream, "%s\n",
                gate->streams <= BFC_STREAMS_SEVERAL ? streams[gate->streams] : "unknown");
    print_label(stream, "");
    fprintf(stream, "%s stream%s seen, several %s time%s so far; %s check%s of itself\n",
            text_count(gate->seen, c, sizeof c), bfc_plural(gate->seen),
            text_count(gate->left, a, sizeof a), bfc_plural(gate->left),
            text_count(gate->checks, b, sizeof b), bfc_plural(gate->checks));
}

static void show_sleep_times(const struct bfc_segment_sleep *sleep, FILE *stream) {
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    if (!sleep->falls)
        return;
    print_label(stream, "");
    fprintf(stream, "fell asleep %s time%s, the last in %s", text_count(sleep->falls, a, sizeof a),
            bfc_plural(sleep->falls), text_duration(sleep->fall_ns, b, sizeof b));
    if (sleep->wakes)
        fprintf(stream, "; woke %s time%s, the last in %s", text_count(sleep->wakes, a, sizeof a),
                bfc_plural(sleep->wakes), text_duration(sleep->wake_ns, b, sizeof b));
    fputc('\n', stream);
    if (sleep->refused) {
        print_label(stream, "");
        fprintf(stream, "could not wake %s time%s, since the device was full\n",
                text_count(sleep->refused, a, sizeof a), bfc_plural(sleep->refused));
    }
}

/* Shows whether the job is asleep. If it is: where the contents of its memory are, and how much
 * memory stays on the device; if not, why it is awake. */
static void show_sleep(const struct bfc_job *job, FILE *stream) {
    const struct bfc_segment_sleep *sleep = &job->header.sleep;
    char why[2 * sizeof sleep->why], where[2 * sizeof sleep->where], age[TEXT_FIGURE],
        a[TEXT_FIGURE], b[TEXT_FIGURE];
    uint64_t now = bfc_wall_clock_ns();
    if (!sleep->active_ns && !sleep->falls && !sleep->why[0])
        return;
    print_label(stream, "sleep");
    fprintf(stream, "%s", job_sleep_name(sleep->state));
    if (sleep->state == BFC_SLEEP_ASLEEP)
        fprintf(stream, " for %s: %s are in %s, %s stay",
                text_duration(bfc_subtract_saturating(now, sleep->since_ns), age, sizeof age),
                bfc_bytes_text(job_totals(job).asleep, a, sizeof a),
                text_printable(sleep->where, where, sizeof where),
                bfc_bytes_text(sleep->kept, b, sizeof b));
    fprintf(stream, "%s%s\n", sleep->why[0] ? ": " : "",
            text_printable(sleep->why, why, sizeof why));
    show_sleep_times(sleep, stream);
}

static void show_coverage(const struct bfc_job *job, FILE *stream) {
    const struct bfc_segment_header *header = &job->header;
    struct bfc_pooled_calls pooled = bfc_job_pooled(job);
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    fputs("\ncoverage\n", stream);
    fprintf(stream, "  %-26s %s allocation%s, %s free%s\n", "pooled",
            text_count(pooled.allocations, a, sizeof a), bfc_plural(pooled.allocations),
            text_count(pooled.frees, b, sizeof b), bfc_plural(pooled.frees));
    show_forwarded(header, stream);
    show_bypassed(header, stream);
    if (coverage_advice(job))
        text_wrap(coverage_advice(job), 2, text_width(stream, 80), stream);
}

/* Calls `show` with each line of the text, after control characters were replaced so that the line
 * is safe for a terminal. Returns how many of the calls returned true. */
static unsigned show_lines(const char *lines, bool show(const char *line, FILE *stream),
                           FILE *stream) {
    unsigned count = 0;
    for (const char *line = lines; *line;) {
        char raw[512], shown[512];
        size_t length = strcspn(line, "\n");
        snprintf(raw, sizeof raw, "%.*s", (int)length, line);
        count += show(text_printable(raw, shown, sizeof shown), stream);
        line += length + (line[length] == '\n');
    }
    return count;
}

static bool show_line(const char *line, FILE *stream) {
    return fprintf(stream, "  %s\n", line) > 0;
}

/* Whether the line, a setting NAME=value, has the variable's default value. False also if this
 * bfcstat does not know the variable. */
static bool is_default(const char *line) {
    struct bfc_options options;
    char name[64], value[512];
    const char *equals = strchrnul(line, '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals - line), line);
    if (!*equals || !bfc_option_find(name))
        return false;
    bfc_options_init(&options);
    bfc_option_print(&options, name, value, sizeof value);
    return strcmp(value, equals + 1) == 0;
}

static bool show_unless_default(const char *line, FILE *stream) {
    return !is_default(line) && show_line(line, stream);
}

static void show_configuration(const struct bfc_segment_header *header, FILE *stream) {
    fputs("\nsettings other than the defaults (--json lists all)", stream);
    if (header->configuration_errors)
        fprintf(stream, ", %" PRIu32 " malformed or unknown", header->configuration_errors);
    fputc('\n', stream);
    show_lines(header->complaints, show_line, stream);
    if (!show_lines(header->configuration, show_unless_default, stream))
        fputs("  none\n", stream);
}

void show_job_text(const struct bfc_job *job, FILE *stream) {
    unsigned pools = 0;
    show_identity(job, stream);
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        if (job->pools[i].state == BFC_POOL_UNUSED)
            continue;
        show_pool(job, i, stream);
        pools++;
    }
    if (pools == 0)
        fputs("\nno pool: no allocation has been served from one yet\n", stream);
    show_charts_text(job, stream);
    show_gate(&job->header, stream);
    show_sleep(job, stream);
    show_coverage(job, stream);
    show_configuration(&job->header, stream);
}

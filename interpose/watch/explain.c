/* Texts about the pools, for people. */
#include "interpose/watch/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/numbers.h"
#include "interpose/config/ranks.h"
#include "interpose/host/quiet.h"
#include "interpose/host/scratch.h"
#include "interpose/stats/segment.h"
#include "segment/figures.h"
#include "segment/kinds.h"
#include "segment/other_jobs.h"

#define SILENCE_NS UINT64_C(10000000000)
#define MAP_WIDTH 64u
#define JOBS_SHOWN 4u

/* ---- text ---- */

struct text {
    size_t used;
    char bytes[3072];
};

static void add_text(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

static void add_text(struct text *text, const char *format, ...) {
    va_list arguments;
    size_t room = sizeof text->bytes - text->used;
    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->used, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->used += (size_t)length < room ? (size_t)length : room - 1;
}

struct figure {
    char text[BFC_BYTES_TEXT];
};

static struct figure bytes_text(uint64_t bytes) {
    struct figure figure;
    bfc_bytes_text(bytes, figure.text, sizeof figure.text);
    return figure;
}
#define BYTES(number) bytes_text(number).text

/* Of many processes with one standard error, which one speaks; nothing where there is one alone. */
static void add_rank(struct text *text) {
    struct bfc_ranks ranks;
    bfc_ranks_read(&ranks, getenv);
    if (ranks.rank < 0)
        return;
    add_text(text, "  rank         %d", (int)ranks.rank);
    if (ranks.ranks >= 0)
        add_text(text, " of %d", (int)ranks.ranks);
    add_text(text, ranks.job[0] ? ", job %s\n" : "%s\n", ranks.job);
}

/* ---- out of memory ---- */

/* Says whether it is time, and how many were not told of since the last time. */
static bool may_speak(unsigned *kept_back) {
    static uint64_t next_ns;
    static unsigned silent;
    uint64_t ns = bfc_now_ns();
    uint64_t next = bfc_load_relaxed(&next_ns);
    if (ns < next || !bfc_compare_exchange_relaxed(&next_ns, &next, ns + SILENCE_NS)) {
        bfc_fetch_add_relaxed(&silent, 1);
        return false;
    }
    *kept_back = bfc_exchange_relaxed(&silent, 0);
    return true;
}

/* All regions one after another, in MAP_WIDTH columns. */
struct columns {
    uint64_t reserved, at;
    uint64_t in_use[MAP_WIDTH], pending[MAP_WIDTH];
};

static void add_block_to_columns(void *context, const struct bfc_block_info *block) {
    struct columns *columns = context;
    uint64_t width = columns->reserved / MAP_WIDTH + 1, end = columns->at + block->size;
    for (uint64_t next; columns->at < end; columns->at = next) {
        uint64_t column = columns->at / width;
        next = (column + 1) * width < end ? (column + 1) * width : end;
        if (column < MAP_WIDTH && block->live)
            columns->in_use[column] += next - columns->at;
        else if (column < MAP_WIDTH && block->fence != BFC_NO_FENCE)
            columns->pending[column] += next - columns->at;
    }
}

static void add_map(struct text *text, struct bfc_pool *pool, uint64_t reserved) {
    struct columns columns = {.reserved = reserved};
    if (reserved == 0)
        return;
    bfc_pool_visit(pool, add_block_to_columns, &columns);
    uint64_t width = reserved / MAP_WIDTH + 1;
    add_text(text, "  map          ");
    for (unsigned i = 0; i < MAP_WIDTH && i * width < reserved; i++) {
        uint64_t whole = reserved - i * width < width ? reserved - i * width : width;
        add_text(text, "%c",
                 columns.in_use[i] >= whole ? '#'
                 : columns.in_use[i]        ? '+'
                 : columns.pending[i]       ? '~'
                                            : '.');
    }
    add_text(text, "  (# in use, + partly, ~ pending, . free)\n");
}

/* Of this process's other contexts on the device; returns how much they have in use. */
static uint64_t add_siblings(struct text *text, const struct bfc_arena *arena) {
    struct bfc_arena *other = NULL;
    struct bfc_pool_stats stats;
    uint64_t in_use = 0, cached = 0;
    while ((other = bfc_arena_next_on(arena->device, other)))
        if (other != arena) {
            bfc_pool_read_stats(other->pool, &stats);
            in_use += stats.in_use;
            cached += bfc_pool_cached(&stats);
        }
    if (in_use || cached)
        add_text(text, "  beside it    this process in other contexts: %s in use, %s cached\n",
                 BYTES(in_use), BYTES(cached));
    return in_use;
}

/* Returns how much they cache. */
static uint64_t add_other_jobs(struct text *text, const struct bfc_arena *arena) {
    struct bfc_other_job found[JOBS_SHOWN];
    uint64_t cached = 0;
    size_t count = bfc_other_jobs_on(arena->stats.section->device_uuid, found, JOBS_SHOWN);
    for (size_t i = 0; i < count; i++) {
        add_text(text, "  beside it    process %d (%s): %s in use, %s cached\n", (int)found[i].pid,
                 found[i].command, BYTES(found[i].in_use), BYTES(found[i].cached));
        cached += found[i].cached;
    }
    return cached;
}

/* The first cause that explains it, and what to try. */
static void add_advice(struct text *text, const struct bfc_arena *arena,
                       const struct bfc_pool_stats *stats, uint64_t in_use, uint64_t bytes,
                       uint64_t others) {
    uint64_t cached = bfc_pool_cached(stats);
    add_text(text, "  try          ");
    if (bytes > arena->device_total)
        add_text(text, "a smaller problem: the device has %s in all\n", BYTES(arena->device_total));
    else if (in_use + bytes > arena->limit)
        add_text(text, "a higher BFC_LIMIT: it is %s, and %s are in use\n", BYTES(arena->limit),
                 BYTES(in_use));
    else if (cached >= bytes)
        add_text(text,
                 "BFC_GROWTH_SIZE=1G%s: what is cached would suffice, but lies in pieces; larger "
                 "regions keep it together\n",
                 arena->limit < arena->device_total ? ", or a higher BFC_LIMIT" : "");
    else if (others >= bytes)
        add_text(text,
                 "bfcstat trim PID for the processes beside it: what they cache would suffice\n");
    else
        add_text(text, "a smaller problem, or fewer processes on the device: %s are in use here\n",
                 BYTES(in_use));
}

static void add_out_of_memory(struct text *text, const struct bfc_driver *driver,
                              struct bfc_arena *arena, size_t bytes) {
    struct bfc_pool_stats stats;
    size_t device_free = 0, device_total = 0;
    bfc_pool_read_stats(arena->pool, &stats);
    if (driver->cuMemGetInfo_v2)
        driver->cuMemGetInfo_v2(&device_free, &device_total);
    uint64_t cached = bfc_pool_cached(&stats);
    add_text(text, "bfcpreload: out of memory: %s asked for on device %d (%s)\n", BYTES(bytes),
             (int)arena->device, arena->stats.section->device_name);
    add_rank(text);
    add_text(text, "  device       %s in all, %s free by the driver\n", BYTES(arena->device_total),
             BYTES(device_free));
    add_text(text, "  this process %s reserved", BYTES(stats.reserved));
    if (arena->limit != UINT64_MAX)
        add_text(text, " of at most %s (BFC_LIMIT)", BYTES(arena->limit));
    add_text(text, ": %s in use, %s cached (ready %s, pending %s, deferred %s)\n",
             BYTES(stats.in_use), BYTES(cached), BYTES(stats.ready), BYTES(stats.pending),
             BYTES(stats.deferred));
    add_text(text,
             "  largest free %s; fragmentation keeps %s of the cached memory from one block\n",
             BYTES(stats.largest_free), BYTES(bfc_subtract_saturating(cached, stats.largest_free)));
    add_map(text, arena->pool, stats.reserved);
    uint64_t in_use = stats.in_use + add_siblings(text, arena);
    int cancel = bfc_cancel_disable();
    uint64_t others = add_other_jobs(text, arena);
    bfc_cancel_restore(cancel);
    add_advice(text, arena, &stats, in_use, bytes, others);
}

void bfc_explain_out_of_memory(const struct bfc_driver *driver, struct bfc_arena *arena,
                               size_t bytes) {
    const struct bfc_process *process = bfc_process_if_made();
    unsigned kept_back;
    if (!process || process->options.log < BFC_LOG_ERROR || !may_speak(&kept_back))
        return;
    struct text *text = bfc_scratch_begin(sizeof *text);
    if (!text)
        return;
    add_out_of_memory(text, driver, arena, bytes);
    if (kept_back)
        add_text(text, "  %u more failed since this was last said\n", kept_back);
    bfc_quiet_write(text->bytes, text->used);
    bfc_scratch_end(text, sizeof *text);
}

/* ---- the summary ---- */

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Each free of the program's would have been a driver call and a wait. */
static void add_pool(struct text *text, const struct bfc_segment_pool *section) {
    const struct bfc_pool_stats *stats = &section->stats;
    uint64_t cached = bfc_pool_cached(stats), calls = stats->allocations + stats->frees;
    uint64_t driver_calls = stats->reserve_calls + stats->release_calls;
    uint64_t waits = bfc_host_waits(section) + stats->waits;
    add_text(text, "  device %lld: %llu allocations, %llu frees; hit rate %.1f %%\n",
             (long long)section->device, (unsigned long long)stats->allocations,
             (unsigned long long)stats->frees, percent(stats->hits, stats->hits + stats->misses));
    add_text(text, "    driver calls %llu instead of %llu; host waits %llu instead of %llu\n",
             (unsigned long long)driver_calls, (unsigned long long)calls, (unsigned long long)waits,
             (unsigned long long)stats->frees);
    add_text(text, "    most in use %s (asked for %s), most reserved %s\n",
             BYTES(stats->peak_in_use), BYTES(stats->peak_requested), BYTES(stats->peak_reserved));
    add_text(text, "    now %s in use, %s cached, %.1f %% of it outside the largest free block\n",
             BYTES(stats->in_use), BYTES(cached),
             cached > stats->largest_free ? percent(cached - stats->largest_free, cached) : 0);
    if (stats->out_of_memory || stats->retries)
        add_text(text, "    %llu out of memory, %llu saved by giving memory back\n",
                 (unsigned long long)stats->out_of_memory, (unsigned long long)stats->retries);
}

static const char *bypass_name(unsigned kind) {
    const char *name = bfc_bypass_kind_name((enum bfc_bypass_kind)kind);
    return name ? name : "other";
}

static void add_coverage(struct text *text, const struct bfc_segment_header *counters) {
    unsigned long long forwarded = 0;
    for (unsigned i = 0; i < BFC_FORWARD_REASONS; i++)
        forwarded += counters->forwarded_allocations[i];
    add_text(text, "  not pooled: %llu allocations forwarded", forwarded);
    for (unsigned i = 0; i < BFC_BYPASS_KINDS; i++)
        if (counters->bypassed_calls[i])
            add_text(text, ", %s %llu (%s)", bypass_name(i),
                     (unsigned long long)counters->bypassed_calls[i],
                     BYTES(counters->bypassed_bytes[i]));
    add_text(text, "\n");
}

/* Sections in the segment, of contexts that have ended too; without a segment, living arenas'. */
static void add_pools(struct text *text) {
    const struct bfc_segment_header *published = bfc_segment_published();
    struct bfc_pool_stats stats;
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena))) {
        bfc_pool_read_stats(arena->pool, &stats); /* brings largest_free up to date */
        if (!arena->stats.segment)
            add_pool(text, arena->stats.section);
    }
    const char *base = (const char *)published + BFC_SEGMENT_POOLS_OFFSET;
    for (unsigned i = 0; published && i < BFC_SEGMENT_POOLS; i++) {
        const struct bfc_segment_pool *section =
            (const struct bfc_segment_pool *)(const void *)base + i;
        if (section->state != BFC_POOL_UNUSED)
            add_pool(text, section);
    }
}

__attribute__((destructor)) static void summarize(void) {
    const struct bfc_process *process = bfc_process_if_made();
    if (!process || !process->options.summary || process->options.log < BFC_LOG_ERROR)
        return;
    struct text *text = bfc_scratch_begin(sizeof *text);
    if (!text)
        return;
    add_text(text, "bfcpreload: summary of process %d (%s)\n", (int)getpid(),
             program_invocation_short_name);
    add_rank(text);
    add_pools(text);
    add_coverage(text, bfc_segment_counters());
    bfc_quiet_write(text->bytes, text->used);
    bfc_scratch_end(text, sizeof *text);
}

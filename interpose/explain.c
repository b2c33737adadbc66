/* Texts about the pools, for people. */
#include "interpose/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interpose/clock.h"
#include "interpose/neighbours.h"
#include "interpose/ranks.h"
#include "interpose/segment.h"
#include "interpose/shared_folder.h"

#define SILENCE_NS UINT64_C(10000000000)
#define MAP_WIDTH 64u
#define NEIGHBOURS_SHOWN 4u

/* ---- text ---- */

struct text {
    size_t used;
    char bytes[3072];
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...) {
    va_list arguments;
    size_t room = sizeof text->bytes - text->used;
    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->used, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void say(const struct text *text) {
    ssize_t written = write(STDERR_FILENO, text->bytes, text->used);
    (void)written; /* nothing can be done if it fails */
}

struct figure {
    char text[24];
};

static struct figure bytes_text(uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct figure figure;
    double value = (double)bytes / 1024;
    unsigned unit = 0;
    for (; value >= 1023.5 && unit < 5; unit++)
        value /= 1024;
    if (bytes < 1024)
        snprintf(figure.text, sizeof figure.text, "%u B", (unsigned)bytes);
    else
        snprintf(figure.text, sizeof figure.text, "%.*f %s", value < 9.995 ? 2 : value < 99.95,
                 value, units[unit]);
    return figure;
}
#define BYTES(number) bytes_text(number).text

static uint64_t cached_bytes(const struct bfc_pool_stats *stats) {
    return stats->clean + stats->dirty + stats->limbo;
}

/* Of many processes with one standard error, which one speaks; nothing where there is one alone. */
static void add_rank(struct text *text) {
    struct bfc_ranks ranks;
    bfc_ranks_read(&ranks, getenv);
    if (ranks.rank < 0)
        return;
    add(text, "  rank         %d", (int)ranks.rank);
    if (ranks.ranks >= 0)
        add(text, " of %d", (int)ranks.ranks);
    add(text, ranks.job[0] ? ", job %s\n" : "%s\n", ranks.job);
}

/* ---- out of memory ---- */

/* Says whether it is time, and how many were not told of since the last time. */
static bool may_speak(unsigned *kept_back) {
    static uint64_t next_ns;
    static unsigned silent;
    uint64_t ns = bfc_now_ns();
    uint64_t next = __atomic_load_n(&next_ns, __ATOMIC_RELAXED);
    if (ns < next || !__atomic_compare_exchange_n(&next_ns, &next, ns + SILENCE_NS, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        __atomic_fetch_add(&silent, 1, __ATOMIC_RELAXED);
        return false;
    }
    *kept_back = __atomic_exchange_n(&silent, 0, __ATOMIC_RELAXED);
    return true;
}

/* All regions one after another, in MAP_WIDTH columns. */
struct columns {
    uint64_t reserved, at;
    uint64_t in_use[MAP_WIDTH], dirty[MAP_WIDTH];
};

static void add_block(void *context, const struct bfc_block_info *block) {
    struct columns *columns = context;
    uint64_t width = columns->reserved / MAP_WIDTH + 1, end = columns->at + block->size;
    for (uint64_t next; columns->at < end; columns->at = next) {
        uint64_t column = columns->at / width;
        next = (column + 1) * width < end ? (column + 1) * width : end;
        if (column < MAP_WIDTH && block->live)
            columns->in_use[column] += next - columns->at;
        else if (column < MAP_WIDTH && block->mark != BFC_NO_MARK)
            columns->dirty[column] += next - columns->at;
    }
}

static void add_map(struct text *text, struct bfc_pool *pool, uint64_t reserved) {
    struct columns columns = {.reserved = reserved};
    if (reserved == 0)
        return;
    bfc_pool_visit(pool, add_block, &columns);
    uint64_t width = reserved / MAP_WIDTH + 1;
    add(text, "  map          ");
    for (unsigned i = 0; i < MAP_WIDTH && i * width < reserved; i++) {
        uint64_t whole = reserved - i * width < width ? reserved - i * width : width;
        add(text, "%c",
            columns.in_use[i] >= whole ? '#'
            : columns.in_use[i]        ? '+'
            : columns.dirty[i]         ? '~'
                                       : '.');
    }
    add(text, "  (# in use, + partly, ~ dirty, . free)\n");
}

/* Returns how much they cache. */
static uint64_t add_neighbours(struct text *text, const struct bfc_domain *domain) {
    struct bfc_neighbour found[NEIGHBOURS_SHOWN];
    uint64_t cached = 0;
    size_t count = bfc_neighbours_on(domain->section->device_uuid, bfc_pid_namespace(), found,
                                     NEIGHBOURS_SHOWN);
    for (size_t i = 0; i < count; i++) {
        add(text, "  beside it    process %d (%s): %s in use, %s cached\n", (int)found[i].pid,
            found[i].command, BYTES(found[i].in_use), BYTES(found[i].cached));
        cached += found[i].cached;
    }
    return cached;
}

/* The first cause that explains it, and what to try. */
static void add_advice(struct text *text, const struct bfc_domain *domain,
                       const struct bfc_pool_stats *stats, uint64_t bytes, uint64_t neighbours) {
    uint64_t cached = cached_bytes(stats);
    add(text, "  try          ");
    if (bytes > domain->device_total)
        add(text, "a smaller problem: the device has %s in all\n", BYTES(domain->device_total));
    else if (stats->in_use + bytes > domain->limit)
        add(text, "a higher BFC_LIMIT: it is %s, and %s are in use\n", BYTES(domain->limit),
            BYTES(stats->in_use));
    else if (cached >= bytes)
        add(text, "BFC_GROWTH_SIZE=1G: what is cached would suffice, but lies in pieces; larger "
                  "regions keep it together\n");
    else if (neighbours >= bytes)
        add(text, "bfcstat trim PID for the processes beside it: what they cache would suffice\n");
    else
        add(text, "a smaller problem, or fewer processes on the device: %s are in use here\n",
            BYTES(stats->in_use));
}

void bfc_explain_out_of_memory(const struct bfc_driver *driver, struct bfc_domain *domain,
                               size_t bytes) {
    const struct bfc_process *process = bfc_process_if_made();
    struct text text = {.used = 0};
    struct bfc_pool_stats stats;
    unsigned kept_back;
    size_t device_free = 0, device_total = 0;
    if (!process || process->options.log < BFC_LOG_ERROR || !may_speak(&kept_back))
        return;
    bfc_pool_read_stats(domain->pool, &stats);
    if (driver->cuMemGetInfo_v2)
        driver->cuMemGetInfo_v2(&device_free, &device_total);
    uint64_t cached = cached_bytes(&stats);
    add(&text, "bfcpreload: out of memory: %s asked for on device %d (%s)\n", BYTES(bytes),
        (int)domain->device, domain->section->device_name);
    add_rank(&text);
    add(&text, "  device       %s in all, %s free by the driver\n", BYTES(domain->device_total),
        BYTES(device_free));
    add(&text, "  this process %s reserved: %s in use, %s cached (clean %s, dirty %s, limbo %s)\n",
        BYTES(stats.reserved), BYTES(stats.in_use), BYTES(cached), BYTES(stats.clean),
        BYTES(stats.dirty), BYTES(stats.limbo));
    add(&text, "  largest free %s; fragmentation keeps %s of the cached memory from one block\n",
        BYTES(stats.largest_free),
        BYTES(cached > stats.largest_free ? cached - stats.largest_free : 0));
    add_map(&text, domain->pool, stats.reserved);
    uint64_t neighbours = add_neighbours(&text, domain);
    add_advice(&text, domain, &stats, bytes, neighbours);
    if (kept_back)
        add(&text, "  %u more failed since this was last said\n", kept_back);
    say(&text);
}

/* ---- the summary ---- */

static const char *const bypass_names[BFC_BYPASS_KINDS] = {
    [BFC_BYPASS_ASYNC] = "async", [BFC_BYPASS_MANAGED] = "managed",
    [BFC_BYPASS_VMM] = "vmm",     [BFC_BYPASS_ARRAY] = "array",
    [BFC_BYPASS_PITCH] = "pitch", [BFC_BYPASS_V1] = "v1",
    [BFC_BYPASS_HOST] = "host",   [BFC_BYPASS_UNKNOWN_ENTRY] = "unknown entry",
};

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Each free of the program's would have been a driver call and a wait. */
static void add_pool(struct text *text, const struct bfc_segment_pool *section) {
    const struct bfc_pool_stats *stats = &section->stats;
    uint64_t cached = cached_bytes(stats), calls = stats->allocations + stats->frees;
    uint64_t driver_calls = stats->reserve_calls + stats->release_calls;
    uint64_t waits = bfc_host_waits(section) + stats->waits;
    add(text, "  device %lld: %llu allocations, %llu frees; hit rate %.1f %%\n",
        (long long)section->device, (unsigned long long)stats->allocations,
        (unsigned long long)stats->frees, percent(stats->hits, stats->hits + stats->misses));
    add(text, "    driver calls %llu instead of %llu; host waits %llu instead of %llu\n",
        (unsigned long long)driver_calls, (unsigned long long)calls, (unsigned long long)waits,
        (unsigned long long)stats->frees);
    add(text, "    most in use %s (asked for %s), most reserved %s\n", BYTES(stats->peak_in_use),
        BYTES(stats->peak_requested), BYTES(stats->peak_reserved));
    add(text, "    now %s in use, %s cached, %.1f %% of it outside the largest free block\n",
        BYTES(stats->in_use), BYTES(cached),
        cached > stats->largest_free ? percent(cached - stats->largest_free, cached) : 0);
    if (stats->out_of_memory || stats->retries)
        add(text, "    %llu out of memory, %llu saved by giving memory back\n",
            (unsigned long long)stats->out_of_memory, (unsigned long long)stats->retries);
}

static void add_coverage(struct text *text, const struct bfc_segment_header *counters) {
    unsigned long long forwarded = 0;
    for (unsigned i = 0; i < BFC_FORWARD_REASONS; i++)
        forwarded += counters->forwarded_allocations[i];
    add(text, "  bypassed: %llu allocations forwarded", forwarded);
    for (unsigned i = 0; i < BFC_BYPASS_KINDS; i++)
        if (counters->bypassed_calls[i])
            add(text, ", %s %llu (%s)", bypass_names[i] ? bypass_names[i] : "other",
                (unsigned long long)counters->bypassed_calls[i],
                BYTES(counters->bypassed_bytes[i]));
    add(text, "\n");
}

/* Sections in the segment, of contexts that have ended too; without a segment, living domains'. */
static void add_pools(struct text *text) {
    const struct bfc_segment_header *published = bfc_segment_published();
    struct bfc_pool_stats stats;
    struct bfc_domain *domain;
    for (unsigned i = 0; (domain = bfc_domain_at(i)); i++) {
        bfc_pool_read_stats(domain->pool, &stats); /* brings largest_free up to date */
        if (!domain->segment)
            add_pool(text, domain->section);
        bfc_domain_drop(domain);
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
    struct text text = {.used = 0};
    if (!process || !process->options.summary || process->options.log < BFC_LOG_ERROR)
        return;
    add(&text, "bfcpreload: summary of process %d (%s)\n", (int)getpid(),
        program_invocation_short_name);
    add_rank(&text);
    add_pools(&text);
    add_coverage(&text, bfc_segment_counters());
    say(&text);
}

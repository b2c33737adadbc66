/* Texts about the pools, for people. */
#include "interpose/watch/explain.h"

#include <errno.h>
#include <fcntl.h>
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
#include "base/open.h"
#include "interpose/arena/host_memory.h"
#include "interpose/config/process.h"
#include "interpose/config/ranks.h"
#include "interpose/host/quiet.h"
#include "interpose/host/scratch.h"
#include "interpose/stats/segment.h"
#include "interpose/watch/fragmentation.h"
#include "interpose/watch/leaks.h"
#include "interpose/who/libraries.h"
#include "pool/pages.h"
#include "segment/figures.h"
#include "segment/kinds.h"
#include "segment/other_jobs.h"
#include "segment/queue.h"

#define SILENCE_NS UINT64_C(60000000000)
#define MAP_WIDTH 64u
#define MIB ((uint64_t)1 << 20)
#define JOBS_SHOWN 4u

/* ---- text ---- */

struct text {
    size_t used;
    char bytes[4096];
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

enum speech { SILENT, A_LINE, ALL };

/* The text, after a minute without a failure; else at most a line a minute, which tells how many
 * failed since something was last said. */
static enum speech may_speak(unsigned *since) {
    static uint64_t last_failure_ns, next_line_ns;
    static unsigned silent;
    uint64_t ns = bfc_now_ns();
    uint64_t last = bfc_exchange_relaxed(&last_failure_ns, ns);
    uint64_t next = bfc_load_relaxed(&next_line_ns);
    bool is_new = !last || ns - last >= SILENCE_NS;
    if ((!is_new && ns < next) ||
        !bfc_compare_exchange_relaxed(&next_line_ns, &next, ns + SILENCE_NS)) {
        bfc_fetch_add_relaxed(&silent, 1);
        return SILENT;
    }
    *since = bfc_exchange_relaxed(&silent, 0) + 1;
    return is_new ? ALL : A_LINE;
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

/* What is known when an allocation fails; sizes in bytes. */
struct picture {
    const struct bfc_want *want;
    struct bfc_pool_stats stats;
    uint64_t cached;                    /* in the pool */
    struct bfc_page_stats pages;        /* of a pool with pages, whose addresses are not 0 */
    uint64_t device_free, device_total; /* by the driver's count; 0: it does not tell */
    uint64_t own_in_use, own_reserved;  /* in all contexts of the process on the device */
    uint64_t jobs_in_use, jobs_cached;  /* of other preloaded jobs of the user */
    uint64_t spilled;                   /* host memory that the process has reserved */
    int32_t cacher;                     /* the job that caches most, */
    uint64_t cacher_cached;
};

/* What is spilled, in all the process. */
static void add_host_memory(struct text *text, struct picture *p) {
    struct bfc_arena *host = NULL;
    struct bfc_pool_stats stats;
    uint64_t in_use = 0, reserved = 0, limit = 0;
    while ((host = bfc_arena_next_host(host))) {
        bfc_pool_read_stats(host->pool, &stats);
        in_use += stats.in_use;
        reserved += stats.reserved;
        limit = host->limit;
    }
    p->spilled = reserved;
    if (limit)
        add_text(text,
                 "  spilled      %s of host memory in use, %s of at most %s pinned (BFC_SPILL)\n",
                 BYTES(in_use), BYTES(reserved), BYTES(limit));
}

static uint64_t limit_of(const struct picture *p) {
    return p->want->arena->limit;
}

static bool is_too_large(const struct picture *p) {
    return p->want->bytes > p->want->arena->device_total;
}

static bool is_beyond_limit(const struct picture *p) {
    return !is_too_large(p) && bfc_want_limit_lacks(p->want) > 0;
}

static bool is_left_to_others(const struct picture *p) {
    return !is_beyond_limit(p) && p->want->arena->left_to_others &&
           p->device_free >= p->want->bytes;
}

/* Of this process's other contexts on the device. */
static void add_siblings(struct text *text, struct picture *p) {
    const struct bfc_arena *arena = p->want->arena;
    struct bfc_arena *other = NULL;
    struct bfc_pool_stats stats;
    uint64_t in_use = 0, cached = 0;
    while ((other = bfc_arena_next_on(arena->device, other)))
        if (other != arena) {
            bfc_pool_read_stats(other->pool, &stats);
            in_use += stats.in_use;
            cached += bfc_pool_cached(&stats);
        }
    p->own_in_use = p->stats.in_use + in_use;
    p->own_reserved = bfc_load_relaxed(&arena->on->reserved);
    if (in_use || cached)
        add_text(text, "  beside it    this process in other contexts: %s in use, %s cached\n",
                 BYTES(in_use), BYTES(cached));
}

static bool waits(const struct bfc_other_job *job) {
    uint64_t now = bfc_kernel_now_ns();
    for (unsigned i = 0; i < BFC_WAITERS; i++)
        if (bfc_waiter_is_there(&job->waiters[i], now))
            return true;
    return false;
}

static void add_other_jobs(struct text *text, struct picture *p) {
    struct bfc_other_job found[JOBS_SHOWN];
    size_t count = bfc_other_jobs_on(p->want->arena->stats.section->device_uuid, found, JOBS_SHOWN);
    for (size_t i = 0; i < count; i++) {
        add_text(text, "  beside it    process %d (%s): %s in use, %s cached%s\n",
                 (int)found[i].pid, found[i].command, BYTES(found[i].in_use),
                 BYTES(found[i].cached), waits(&found[i]) ? "; it waits for memory" : "");
        p->jobs_in_use += found[i].in_use;
        p->jobs_cached += found[i].cached;
        if (found[i].cached > p->cacher_cached) {
            p->cacher = found[i].pid;
            p->cacher_cached = found[i].cached;
        }
    }
}

/* What the driver counts and no pool that we see has reserved. */
static void add_rest(struct text *text, const struct picture *p) {
    uint64_t ours = p->own_reserved + p->jobs_in_use + p->jobs_cached;
    uint64_t rest = bfc_subtract_saturating(p->device_total, p->device_free + ours);
    if (p->device_total && rest)
        add_text(
            text,
            "  others       %s by the driver's count: contexts, other users, programs that are "
            "not preloaded\n",
            BYTES(rest));
}

/* Which limit bites. */
static void add_cause(struct text *text, const struct picture *p) {
    const struct bfc_arena *arena = p->want->arena;
    add_text(text, "  refused by   ");
    if (is_too_large(p))
        add_text(text, "the size of the device: %s in all\n", BYTES(arena->device_total));
    else if (is_beyond_limit(p))
        add_text(text, "BFC_LIMIT: it is %s, and this process has %s of it reserved\n",
                 BYTES(limit_of(p)), BYTES(p->own_reserved));
    else if (is_left_to_others(p))
        add_text(text, "BFC_RESERVE: %s are left to others, and %s are free on the device\n",
                 BYTES(arena->left_to_others), BYTES(p->device_free));
    else
        add_text(text, "the device: %s in all, %s free by the driver\n", BYTES(arena->device_total),
                 BYTES(p->device_free));
}

static void add_wait(struct text *text, const struct bfc_want *want) {
    static const char *const ends[] = {
        [BFC_WAIT_TIME] = "until BFC_WAIT was over",
        [BFC_WAIT_SIGNAL] = "until a signal came",
        [BFC_WAIT_STUCK] = "no longer, since all jobs that wait hold what the others want",
        [BFC_WAIT_ENDED] = "until the context or the process was about to end",
    };
    if (want->waited != BFC_WAIT_NOT_BEGUN)
        add_text(text, "  waited       %.1f s, %s\n", (double)want->waited_ns / 1e9,
                 ends[want->waited]);
}

/* ---- what would have helped ---- */

static uint64_t round_up_mib(uint64_t bytes) {
    return (bytes + (1 << 20) - 1) >> 20;
}

/* What the device would have had for it, with so much more. */
static bool device_would_have(const struct picture *p, uint64_t more) {
    return p->want->bytes + p->want->arena->left_to_others <=
           bfc_add_saturating(p->device_free, more);
}

static bool try_limit(struct text *text, const struct picture *p) {
    if (!is_beyond_limit(p) || !device_would_have(p, 0))
        return false;
    add_text(text, "a higher BFC_LIMIT: with %lluM it would have fitted\n",
             (unsigned long long)round_up_mib(p->own_reserved + p->want->bytes));
    return true;
}

static bool try_reserve(struct text *text, const struct picture *p) {
    if (!is_left_to_others(p))
        return false;
    add_text(text, "a lower BFC_RESERVE: with %lluM it would have fitted\n",
             (unsigned long long)((p->device_free - p->want->bytes) >> 20));
    return true;
}

static bool has_pages(const struct picture *p) {
    return p->pages.addresses > 0;
}

#define GROWTH_ADVISED (1ULL << 30) /* of BFC_GROWTH_SIZE */

/* Gaps and what could still be taken, were they one piece: as pages are. */
static bool try_growth(struct text *text, const struct picture *p) {
    uint64_t room = bfc_min(bfc_subtract_saturating(p->device_free, p->want->arena->left_to_others),
                            bfc_subtract_saturating(limit_of(p), p->own_reserved));
    const struct bfc_process *process = bfc_process_if_made();
    if (has_pages(p) || !process || process->options.growth_size >= GROWTH_ADVISED || !p->cached ||
        bfc_add_saturating(p->cached, room) < p->want->bytes)
        return false;
    add_text(
        text,
        "BFC_GROWTH_SIZE=1G: in one piece the %s cached and the %s that could be taken would have "
        "sufficed; larger regions keep them together\n",
        BYTES(p->cached), BYTES(room));
    return true;
}

static bool try_trim(struct text *text, const struct picture *p) {
    if (is_beyond_limit(p) || !p->cacher_cached || !device_would_have(p, p->cacher_cached))
        return false;
    const struct bfc_process *process = bfc_process_if_made();
    bool asked =
        process && process->options.yield && (process->options.last_resort >> BFC_RUNG_JOBS & 1);
    add_text(text, "bfcstat trim %d: what that process caches would have sufficed, but it %s\n",
             (int)p->cacher,
             asked ? "did not give it back (it is stopped, has BFC_YIELD=0, or caches it in pieces)"
                   : "was not asked (by BFC_YIELD or BFC_LAST_RESORT here)");
    return true;
}

static bool try_wait(struct text *text, const struct picture *p) {
    const struct bfc_process *process = bfc_process_if_made();
    if (is_beyond_limit(p) || !process || process->options.wait > 0 || !p->jobs_in_use ||
        !device_would_have(p, bfc_add_saturating(p->jobs_in_use, p->jobs_cached)))
        return false;
    add_text(text,
             "BFC_WAIT=SECONDS: it would fit once the jobs beside it have freed what they use\n");
    return true;
}

/* What the host could still give, by the kernel's estimate; 0: it does not tell. */
static uint64_t host_available(void) {
    char text[512];
    int file = bfc_open("/proc/meminfo", O_RDONLY, 0);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, "MemAvailable:");
    return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) << 10 : 0;
}

static bool try_spill(struct text *text, const struct picture *p) {
    const struct bfc_process *process = bfc_process_if_made();
    uint64_t size = (p->spilled + p->want->bytes + MIB - 1) / MIB * MIB;
    if (!process || p->want->in_pool || process->options.spill >= size ||
        !(process->options.last_resort >> BFC_RUNG_SPILL & 1) ||
        !bfc_host_memory_can_be_had(p->want->driver, p->want->arena->device) ||
        p->want->bytes > host_available())
        return false;
    add_text(text, "BFC_SPILL=%lluM: in host memory, which is slower, it would have fitted\n",
             (unsigned long long)(size / MIB));
    return true;
}

/* What might have helped, and whether it could with a request larger than the device too. */
static const struct advice {
    bool (*try)(struct text *text, const struct picture *p);
    bool beyond;
} advice[] = {
    {try_limit, false}, {try_reserve, false}, {try_growth, false},
    {try_trim, false},  {try_wait, false},    {try_spill, true},
};

/* Each is tried on the figures first: would the request have fitted? */
static void add_advice(struct text *text, const struct picture *p) {
    size_t before = text->used, given = 0;
    for (size_t i = 0; i < sizeof advice / sizeof advice[0]; i++) {
        before = text->used;
        add_text(text, given ? "  or           " : "  try          ");
        if ((advice[i].beyond || !is_too_large(p)) && advice[i].try(text, p))
            given++;
        else
            text->used = before;
    }
    if (!given && p->want->bytes + p->own_in_use <= bfc_min(limit_of(p), p->device_total))
        add_text(text, "  try          fewer processes on the device: %s are in use here\n",
                 BYTES(p->own_in_use));
    else if (!given)
        add_text(text,
                 "  try          a smaller problem: %s are in use here, and nothing that could be "
                 "set would make room\n",
                 BYTES(p->own_in_use));
}

/* What keeps cached memory from one block. */
static void add_pieces(struct text *text, const struct picture *p) {
    if (has_pages(p))
        add_text(text,
                 "  pages        %s cached in whole ones, for any block; %s in such as have a byte "
                 "in use or still waited for%s\n",
                 BYTES(p->pages.ready), BYTES(bfc_subtract_saturating(p->cached, p->pages.ready)),
                 p->pages.pinned ? ", or were shared" : "");
    else
        add_text(
            text, "  largest free %s%s\n", BYTES(p->stats.largest_free),
            p->cached >= p->want->bytes
                ? ": what is cached would suffice in one piece, but fragmentation keeps it apart"
                : "");
}

/* Of all devices: a program's libraries seldom share one device and not another. */
static void add_holders(struct text *text) {
    enum { TOLD = 3 };
    struct bfc_who_library largest[TOLD];
    size_t count = bfc_who_libraries(largest, TOLD);
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(largest[i].path, '/');
        const char *name = slash ? slash + 1 : largest[i].path;
        add_text(text, "%s%s %s", i ? ", " : "  held by      ",
                 *name ? name : program_invocation_short_name, BYTES((uint64_t)largest[i].bytes));
    }
    if (count)
        add_text(text, " (bfcstat who has the call stacks)\n");
}

static void add_own(struct text *text, struct picture *p) {
    const struct bfc_pool_stats *stats = &p->stats;
    add_text(text, "  this process %s reserved", BYTES(stats->reserved));
    if (limit_of(p) != UINT64_MAX)
        add_text(text, " of at most %s (BFC_LIMIT)", BYTES(limit_of(p)));
    add_text(text, ": %s in use, %s cached (ready %s, pending %s, deferred %s)\n",
             BYTES(stats->in_use), BYTES(p->cached), BYTES(stats->ready), BYTES(stats->pending),
             BYTES(stats->deferred));
    add_pieces(text, p);
    add_host_memory(text, p);
    add_holders(text);
    add_map(text, p->want->arena->pool, stats->reserved);
}

static void add_head(struct text *text, const struct bfc_want *want) {
    add_text(text, "bfcpreload: out of memory: %s asked for on device %d (%s)\n",
             BYTES(want->bytes), (int)want->arena->device, want->arena->stats.section->device_name);
    add_rank(text);
}

static void add_out_of_memory(struct text *text, const struct bfc_want *want) {
    struct picture picture = {.want = want};
    size_t device_free = 0, device_total = 0;
    bfc_pool_read_stats(want->arena->pool, &picture.stats);
    if (want->driver->cuMemGetInfo_v2)
        want->driver->cuMemGetInfo_v2(&device_free, &device_total);
    picture.device_free = device_free;
    picture.device_total = device_total;
    picture.cached = bfc_pool_cached(&picture.stats);
    bfc_pool_page_stats(want->arena->pool, &picture.pages);
    add_head(text, want);
    add_own(text, &picture);
    add_siblings(text, &picture);
    add_other_jobs(text, &picture);
    add_rest(text, &picture);
    add_cause(text, &picture);
    add_wait(text, want);
    add_advice(text, &picture);
}

void bfc_explain_out_of_memory(const struct bfc_want *want) {
    const struct bfc_process *process = bfc_process_if_made();
    unsigned since = 0;
    if (!process || process->options.log < BFC_LOG_ERROR)
        return;
    enum speech speech = may_speak(&since);
    if (speech == A_LINE)
        bfc_log(BFC_LOG_ERROR,
                "out of memory again: %u times in the last minute or so, the last for %s on "
                "device %d",
                since, BYTES(want->bytes), (int)want->arena->device);
    struct text *text = speech == ALL ? bfc_scratch_begin(sizeof *text) : NULL;
    if (!text)
        return;
    int cancel = bfc_cancel_disable(); /* files are opened */
    add_out_of_memory(text, want);
    bfc_cancel_restore(cancel);
    bfc_quiet_write(text->bytes, text->used);
    bfc_scratch_end(text, sizeof *text);
}

/* ---- the summary ---- */

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_spilled(struct text *text, const struct bfc_segment_pool *section) {
    const struct bfc_pool_stats *stats = &section->stats;
    add_text(
        text,
        "  device %lld: %llu allocations spilled to host memory (BFC_SPILL=%s), most %s, now %s in "
        "%llu blocks\n",
        (long long)section->device, (unsigned long long)stats->allocations,
        BYTES(section->device_total), BYTES(stats->peak_in_use), BYTES(stats->in_use),
        (unsigned long long)stats->blocks);
}

/* Each free of the program's would have been a driver call and a wait. */
static void add_pool(struct text *text, const struct bfc_segment_pool *section) {
    if (section->memory == BFC_MEMORY_HOST) {
        add_spilled(text, section);
        return;
    }
    const struct bfc_pool_stats *stats = &section->stats;
    uint64_t cached = bfc_pool_cached(stats), calls = stats->allocations + stats->frees;
    uint64_t driver_calls = bfc_pool_driver_calls(section);
    uint64_t waits = bfc_host_waits(section) + stats->waits;
    add_text(text, "  device %lld: %llu allocations, %llu frees; hit rate %.1f %%\n",
             (long long)section->device, (unsigned long long)stats->allocations,
             (unsigned long long)stats->frees, percent(stats->hits, stats->hits + stats->misses));
    add_text(text, "    driver calls %llu instead of %llu; host waits %llu instead of %llu\n",
             (unsigned long long)driver_calls, (unsigned long long)calls, (unsigned long long)waits,
             (unsigned long long)stats->frees);
    add_text(text, "    most in use %s (asked for %s), most reserved %s\n",
             BYTES(stats->peak_in_use), BYTES(stats->peak_requested), BYTES(stats->peak_reserved));
    add_text(text, "    now %s in use, %s cached", BYTES(stats->in_use), BYTES(cached));
    double fragmentation = bfc_pool_fragmentation(section);
    if (fragmentation > 0)
        add_text(text, "; %.1f %% of the ready memory in pieces too small for %s",
                 100 * fragmentation, BYTES(section->fit.request));
    add_text(text, "\n");
    if (stats->out_of_memory || stats->retries)
        add_text(text, "    %llu out of memory, %llu saved by last resorts\n",
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
    bfc_fragmentation_measure();
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
    if (process->options.summary == BFC_SUMMARY_LEAKS)
        bfc_leaks_tell();
}

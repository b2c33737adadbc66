/* The message that says why an allocation failed. */
#include "interpose/features/pressure/pressure.h"

#include <sys/mman.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "base/shared_folder.h"
#include "base/sizes.h"
#include "interpose/config/process.h"
#include "interpose/features/common/message.h"
#include "interpose/host/scratch.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/feature.h"
#include "pool/pages.h"
#include "segment/figures.h"
#include "segment/queue.h"

#define MESSAGE 4096u
#define SILENCE_NS UINT64_C(60000000000)
#define MAP_WIDTH 64u
enum { JOBS_SHOWN = 4 };

enum speech { SILENT, A_LINE, ALL };

/* Decides how much to say about a failed allocation: the whole message if there was no failure for
 * a minute, else one line, at most once a minute. In the case of a line, `since` is set to the
 * number of failures since the last line or message. */
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

/* How full the regions are, as the message draws it in one line: all regions stand side by side,
 * and each column of the line stands for an equal share of their bytes. */
struct columns {
    uint64_t reserved, at;
    uint64_t in_use[MAP_WIDTH], pending[MAP_WIDTH];
};

static void add_block_to_columns(void *context, const struct bfc_block_info *block) {
    struct columns *columns = context;
    uint64_t width = columns->reserved / MAP_WIDTH + 1, end = columns->at + block->size;
    for (uint64_t next; columns->at < end; columns->at = next) {
        uint64_t column = columns->at / width;
        next = bfc_min((column + 1) * width, end);
        if (column < MAP_WIDTH && block->live)
            columns->in_use[column] += next - columns->at;
        else if (column < MAP_WIDTH && block->fence != BFC_NO_FENCE)
            columns->pending[column] += next - columns->at;
    }
}

static void add_map(struct bfc_message *message, struct bfc_pool *pool, uint64_t reserved) {
    struct columns columns = {.reserved = reserved};
    if (reserved == 0)
        return;
    bfc_pool_visit(pool, add_block_to_columns, &columns);
    uint64_t width = reserved / MAP_WIDTH + 1;
    bfc_message_add(message, "  map          ");
    for (unsigned i = 0; i < MAP_WIDTH && i * width < reserved; i++) {
        uint64_t whole = bfc_min(reserved - i * width, width);
        bfc_message_add(message, "%c",
                        columns.in_use[i] >= whole ? '#'
                        : columns.in_use[i]        ? '+'
                        : columns.pending[i]       ? '~'
                                                   : '.');
    }
    bfc_message_add(message, "  (# in use, + partly, ~ pending, . free)\n");
}

/* What the message about a failed allocation is made of; all sizes are in bytes. */
struct picture {
    const struct bfc_call *call;
    const struct bfc_arena *arena; /* the arena in which the allocation failed */
    const struct bfc_options *options;
    struct bfc_pool_stats stats;
    uint64_t cached;  /* bytes that the pool has cached */
    uint64_t lacking; /* bytes that the pool would have to take from the device for the
                         allocation */
    /* figures about the pages of a pool; without pages `addresses` is 0 */
    struct bfc_page_stats pages;
    /* what the device has free and in all, by the driver's count; 0: not known */
    uint64_t device_free, device_total;
    uint64_t own_in_use, own_reserved; /* sums over all contexts of the process on the device */
    uint64_t jobs_in_use, jobs_cached; /* sums over the other preloaded jobs of the user */
    int32_t cacher;                    /* process id of the job that caches most */
    uint64_t cacher_cached;
};

static bool is_too_large(const struct picture *p) {
    return p->call->bytes > p->arena->device_total;
}

static bool is_beyond_limit(const struct picture *p) {
    return !is_too_large(p) && bfc_call_limit_lacks(p->call) > 0;
}

static bool is_left_to_others(const struct picture *p) {
    return !is_beyond_limit(p) && p->arena->left_to_others && p->device_free >= p->lacking;
}

/* Adds to the message what this process's other contexts on the device hold. */
static void add_siblings(struct bfc_message *message, struct picture *p) {
    const struct bfc_arena *arena = p->arena;
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
        bfc_message_add(message,
                        "  beside it    this process in other contexts: %s in use, %s cached\n",
                        BFC_BYTES(in_use), BFC_BYTES(cached));
}

static bool job_waits(const struct bfc_other_job *job) {
    uint64_t now = bfc_kernel_now_ns();
    for (unsigned i = 0; i < BFC_WAITERS; i++)
        if (bfc_waiter_is_there(&job->waiters[i], now))
            return true;
    return false;
}

static uint64_t held_by(const struct bfc_other_job *job) {
    return job->in_use + job->cached;
}

/* Brings the `most` jobs that hold most to the front, sorted, without qsort, which may allocate. */
static void bring_forward(struct bfc_other_job *jobs, size_t count, size_t most) {
    for (size_t i = 0; i < most && i < count; i++) {
        size_t largest = i;
        for (size_t k = i + 1; k < count; k++)
            if (held_by(&jobs[k]) > held_by(&jobs[largest]))
                largest = k;
        struct bfc_other_job job = jobs[i];
        jobs[i] = jobs[largest];
        jobs[largest] = job;
    }
}

static void add_sleep(struct bfc_message *message, const struct bfc_other_job *job) {
    struct bfc_segment_header *header = job->asleep ? bfc_other_job_map(job->pid) : NULL;
    if (!header)
        return;
    const struct bfc_segment_sleep *sleep = &header->sleep;
    uint64_t ns = bfc_subtract_saturating(bfc_wall_clock_ns(), sleep->since_ns);
    bfc_message_add(message, "; %s asleep for %.0f s, in %.60s, not on the device",
                    BFC_BYTES(job->asleep), (double)ns / 1e9, sleep->where);
    munmap(header, BFC_SEGMENT_SIZE);
}

/* Lists the jobs that hold most and sums up the rest, without those that neither hold nor
 * sleep nor wait. */
static void add_jobs(struct bfc_message *message, const struct bfc_other_job *jobs, size_t count) {
    uint64_t in_use = 0, cached = 0;
    size_t more = 0;
    for (size_t i = 0; i < count; i++) {
        const struct bfc_other_job *job = &jobs[i];
        bool waiting = job_waits(job);
        if (!held_by(job) && !job->asleep && !waiting)
            continue;
        if (i >= JOBS_SHOWN) {
            in_use += job->in_use;
            cached += job->cached;
            more++;
        } else {
            bfc_message_add(message, "  beside it    process %d (%s): %s in use, %s cached",
                            (int)job->pid, job->command, BFC_BYTES(job->in_use),
                            BFC_BYTES(job->cached));
            add_sleep(message, job);
            bfc_message_add(message, "%s\n", waiting ? "; it waits for memory" : "");
        }
    }
    if (more)
        bfc_message_add(message, "  beside it    %zu more: %s in use, %s cached\n", more,
                        BFC_BYTES(in_use), BFC_BYTES(cached));
}

static void note_jobs(struct picture *p, const struct bfc_other_job *jobs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        p->jobs_in_use += jobs[i].in_use;
        p->jobs_cached += jobs[i].cached;
        if (jobs[i].cached > p->cacher_cached) {
            p->cacher = jobs[i].pid;
            p->cacher_cached = jobs[i].cached;
        }
    }
}

static void add_other_jobs(struct bfc_message *message, struct picture *p) {
    const size_t size = BFC_JOBS_MOST * sizeof(struct bfc_other_job);
    struct bfc_other_job *jobs = bfc_scratch_begin(size);
    if (!jobs)
        return;
    size_t count = bfc_other_jobs_on(p->arena->stats.section->device_uuid, jobs, BFC_JOBS_MOST);
    bring_forward(jobs, count, JOBS_SHOWN);
    add_jobs(message, jobs, count);
    note_jobs(p, jobs, count);
    bfc_scratch_end(jobs, size);
}

/* Adds to the message what is used on the device, by the driver's count, beyond the pools of this
 * process and of other preloaded jobs. */
static void add_rest(struct bfc_message *message, const struct picture *p) {
    uint64_t ours = p->own_reserved + p->jobs_in_use + p->jobs_cached;
    uint64_t rest = bfc_subtract_saturating(p->device_total, p->device_free + ours);
    if (p->device_total && rest)
        bfc_message_add(
            message,
            "  others       %s by the driver's count: contexts, what it rounds up, other users, "
            "programs that are not preloaded\n",
            BFC_BYTES(rest));
}

/* Whether the wait for memory ended because the context or the process was about to end, so that
 * the driver has no figures. */
static bool has_ended(const struct picture *p) {
    return p->call->waited == BFC_WAIT_ENDED;
}

/* Says which limit the allocation exceeds. */
static void add_cause(struct bfc_message *message, const struct picture *p) {
    const struct bfc_arena *arena = p->arena;
    bfc_message_add(message, "  refused by   ");
    if (has_ended(p))
        bfc_message_add(message, "the end of the context or of the process\n");
    else if (is_too_large(p))
        bfc_message_add(message, "the size of the device: %s in all\n",
                        BFC_BYTES(arena->device_total));
    else if (is_beyond_limit(p))
        bfc_message_add(message, "BFC_LIMIT: it is %s, and this process has %s of it reserved\n",
                        BFC_BYTES(p->arena->limit), BFC_BYTES(p->own_reserved));
    else if (is_left_to_others(p))
        bfc_message_add(message,
                        "BFC_RESERVE: %s are left to others, and %s are free on the device\n",
                        BFC_BYTES(arena->left_to_others), BFC_BYTES(p->device_free));
    else
        bfc_message_add(message, "the device: %s in all, %s free by the driver\n",
                        BFC_BYTES(arena->device_total), BFC_BYTES(p->device_free));
}

static void add_wait(struct bfc_message *message, const struct picture *p) {
    static const char *const ends[] = {
        [BFC_WAIT_TIME] = "until BFC_WAIT was over",
        [BFC_WAIT_SIGNAL] = "until a signal came",
        [BFC_WAIT_STUCK] = "no longer, since all jobs that wait hold what the others want",
        [BFC_WAIT_ENDED] = "until the context or the process was about to end",
    };
    if (p->call->waited != BFC_WAIT_NOT_BEGUN)
        bfc_message_add(message, "  waited       %.1f s, %s\n", (double)p->call->waited_ns / 1e9,
                        ends[p->call->waited]);
    else if (p->options->wait > 0 && !p->arena->stats.segment)
        bfc_message_add(message,
                        "  waited       not at all: BFC_WAIT needs a segment in " BFC_SHARED_FOLDER
                        ", and this process has none\n");
}

static uint64_t round_up_mib(uint64_t bytes) {
    return (bytes + (1 << 20) - 1) >> 20;
}

/* Whether the device could serve the request if `more` bytes were free. */
static bool device_would_have(const struct picture *p, uint64_t more) {
    return p->lacking + p->arena->left_to_others <= bfc_add_saturating(p->device_free, more);
}

static bool try_limit(struct bfc_message *message, const struct picture *p) {
    if (!is_beyond_limit(p) || !device_would_have(p, 0))
        return false;
    bfc_message_add(message, "a higher BFC_LIMIT: with %lluM this request would have fitted\n",
                    (unsigned long long)round_up_mib(p->own_reserved + p->lacking));
    return true;
}

static bool try_reserve(struct bfc_message *message, const struct picture *p) {
    if (!is_left_to_others(p))
        return false;
    bfc_message_add(message, "a lower BFC_RESERVE: with %lluM this request would have fitted\n",
                    (unsigned long long)((p->device_free - p->lacking) >> 20));
    return true;
}

/* Returns by how many bytes the pool could grow, as far as the device and BFC_LIMIT allow. */
static uint64_t room_to_grow(const struct picture *p) {
    return bfc_min(bfc_subtract_saturating(p->device_free, p->arena->left_to_others),
                   bfc_subtract_saturating(p->arena->limit, p->own_reserved));
}

/* Says that what is cached, with what could still be reserved, would have sufficed in one piece. */
static void add_one_piece(struct bfc_message *message, const struct picture *p) {
    uint64_t room = room_to_grow(p);
    bfc_message_add(message, "in one piece the %s cached", BFC_BYTES(p->cached));
    if (room)
        bfc_message_add(message, " and the %s that could be taken", BFC_BYTES(room));
    bfc_message_add(message, " would have sufficed");
}

/* Advises to run without the plan or with a better one: blocks at planned addresses may have split
 * the memory that would have sufficed in one piece. Returns whether it advises that. */
static bool try_without_plan(struct bfc_message *message, const struct picture *p) {
    if (!bfc_load_relaxed(&p->arena->placer) ||
        !bfc_load_relaxed(&p->arena->stats.section->plan.memory) || !p->cached ||
        bfc_add_saturating(p->cached, room_to_grow(p)) < p->call->bytes)
        return false;
    bfc_message_add(message,
                    "a run without BFC_PLAN, with BFC_BACKING=pages, or with a plan of a run like "
                    "this one: ");
    add_one_piece(message, p);
    bfc_message_add(message, "\n");
    return true;
}

#define GROWTH_ADVISED (1ULL << 30) /* the BFC_GROWTH_SIZE that the message may advise */

/* Whether the settings make regions at least as large as GROWTH_ADVISED, or the pool's policy
 * chooses their size whatever the settings say. */
static bool growth_is_settled(const struct bfc_options *options) {
    return options->policy == BFC_POLICY_PYTORCH ||
           (options->growth_size >= GROWTH_ADVISED && options->growth != BFC_GROWTH_EXACT);
}

/* Advises larger regions if what is cached, and what could still be reserved, would have sufficed
 * in one piece. Returns whether it advises that. */
static bool try_growth(struct bfc_message *message, const struct picture *p) {
    uint64_t room = room_to_grow(p);
    if (p->pages.addresses || growth_is_settled(p->options) || !p->cached ||
        bfc_add_saturating(p->cached, room) < p->call->bytes)
        return false;
    bfc_message_add(message, "%sBFC_GROWTH_SIZE=1G: ",
                    p->options->growth == BFC_GROWTH_EXACT ? "BFC_GROWTH=double " : "");
    add_one_piece(message, p);
    bfc_message_add(message, "; larger regions keep %s together\n", room ? "them" : "it");
    return true;
}

static bool try_trim(struct bfc_message *message, const struct picture *p) {
    if (is_beyond_limit(p) || !p->cacher_cached || !device_would_have(p, p->cacher_cached))
        return false;
    bool asked = p->options->yield && (p->options->last_resort >> BFC_RUNG_JOBS & 1);
    bfc_message_add(
        message, "bfcstat trim %d: what that process caches would have sufficed, but it %s\n",
        (int)p->cacher,
        asked ? "did not give it back (it is stopped, has BFC_YIELD=0, or caches it in pieces)"
              : "was not asked (by BFC_YIELD or BFC_LAST_RESORT here)");
    return true;
}

static bool try_wait(struct bfc_message *message, const struct picture *p) {
    if (is_beyond_limit(p) || p->options->wait > 0 || !p->jobs_in_use ||
        !device_would_have(p, bfc_add_saturating(p->jobs_in_use, p->jobs_cached)))
        return false;
    bfc_message_add(
        message,
        "BFC_WAIT=SECONDS: this request would fit once the jobs beside it have freed what they "
        "use\n");
    return true;
}

static bool try_features(struct bfc_message *message, const struct picture *p) {
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->advise && (*feature)->advise(message, p->call))
        return true;
    return false;
}

/* Functions each of which adds one piece of advice, and returns whether it applies. For a request
 * that is too large for the device, only try_features is called. */
static bool (*const advice[])(struct bfc_message *message, const struct picture *p) = {
    try_limit, try_reserve, try_without_plan, try_growth, try_trim, try_wait, try_features,
};

/* Adds advice on what, as far as the figures show, would have made the request fit. */
static void add_advice(struct bfc_message *message, const struct picture *p) {
    size_t before = message->used, given = 0;
    for (size_t i = 0; i < sizeof advice / sizeof advice[0]; i++) {
        before = message->used;
        bfc_message_add(message, given ? "  or           " : "  try          ");
        if ((!is_too_large(p) || advice[i] == try_features) && advice[i](message, p))
            given++;
        else
            message->used = before;
    }
    if (!given && !is_beyond_limit(p) && p->call->bytes + p->own_in_use <= p->device_total)
        bfc_message_add(message,
                        "  try          fewer processes on the device: %s are in use here\n",
                        BFC_BYTES(p->own_in_use));
    else if (!given)
        bfc_message_add(
            message,
            "  try          a smaller problem: %s are in use here, and nothing that could be "
            "set would make room\n",
            BFC_BYTES(p->own_in_use));
}

/* What is free in regions that a pool of pages reserved because it could get no pages: all bytes,
 * and those of the largest free block. */
struct free_in_regions {
    uint64_t bytes, largest;
};

static void add_if_in_region(void *context, const struct bfc_block_info *block) {
    struct free_in_regions *sum = context;
    if (block->live || block->paged)
        return;
    sum->bytes += block->size;
    sum->largest = bfc_max(sum->largest, block->size);
}

static void add_pages(struct bfc_message *message, const struct picture *p) {
    struct free_in_regions regions = {0};
    bfc_pool_visit(p->arena->pool, add_if_in_region, &regions);
    uint64_t rest = bfc_subtract_saturating(p->cached, p->pages.ready + regions.bytes);
    bfc_message_add(message,
                    "  pages        %s cached in whole ones, for any block; %s in such as have a "
                    "byte in use or still waited for%s\n",
                    BFC_BYTES(p->pages.ready), BFC_BYTES(rest),
                    p->pages.pinned ? ", or were shared" : "");
    if (regions.bytes)
        bfc_message_add(message,
                        "  regions      %s cached in some that took the place of pages; largest "
                        "free %s\n",
                        BFC_BYTES(regions.bytes), BFC_BYTES(regions.largest));
}

/* Says why the cached memory does not serve the request. */
static void add_pieces(struct bfc_message *message, const struct picture *p) {
    if (p->pages.addresses)
        add_pages(message, p);
    else
        bfc_message_add(
            message, "  largest free %s%s\n", BFC_BYTES(p->stats.largest_free),
            p->cached >= p->call->bytes
                ? ": what is cached would suffice in one piece, but fragmentation keeps it apart"
                : "");
}

static void add_own(struct bfc_message *message, struct picture *p) {
    const struct bfc_pool_stats *stats = &p->stats;
    bfc_message_add(message, "  this process %s reserved", BFC_BYTES(stats->reserved));
    if (p->arena->limit != UINT64_MAX)
        bfc_message_add(message, " of at most %s (BFC_LIMIT)", BFC_BYTES(p->arena->limit));
    uint64_t asleep = bfc_load_relaxed(&p->arena->stats.section->pages.asleep);
    if (asleep)
        bfc_message_add(message, ", of it %s asleep, in %.60s, not on the device",
                        BFC_BYTES(asleep), bfc_segment_counters()->sleep.where);
    bfc_message_add(message, ": %s in use, %s cached (ready %s, pending %s, deferred %s)\n",
                    BFC_BYTES(stats->in_use), BFC_BYTES(p->cached), BFC_BYTES(stats->ready),
                    BFC_BYTES(stats->pending), BFC_BYTES(stats->deferred));
    add_pieces(message, p);
    BFC_TELL_FEATURES(explain_holders, message);
    add_map(message, p->arena->pool, stats->reserved);
}

static void add_head(struct bfc_message *message, const struct bfc_call *call) {
    bfc_message_add(message, "bfcpreload: out of memory: %s asked for on device %d (%s)\n",
                    BFC_BYTES(call->bytes), (int)call->arena->device,
                    call->arena->stats.section->device_name);
    bfc_message_add_rank(message);
}

static void add_out_of_memory(struct bfc_message *message, const struct bfc_call *call,
                              const struct bfc_options *options) {
    struct picture picture = {.call = call, .arena = call->arena, .options = options};
    size_t device_free = 0, device_total = 0;
    bfc_pool_read_stats(call->arena->pool, &picture.stats);
    if (call->driver->cuMemGetInfo_v2)
        call->driver->cuMemGetInfo_v2(&device_free, &device_total);
    picture.device_free = device_free;
    picture.device_total = device_total;
    picture.cached = bfc_pool_cached(&picture.stats);
    bfc_pool_page_stats(call->arena->pool, &picture.pages);
    picture.lacking = bfc_call_lacks(call);
    add_head(message, call);
    add_own(message, &picture);
    add_siblings(message, &picture);
    add_other_jobs(message, &picture);
    add_rest(message, &picture);
    add_cause(message, &picture);
    add_wait(message, &picture);
    if (!has_ended(&picture))
        add_advice(message, &picture);
}

void bfc_explain_out_of_memory(const struct bfc_call *call) {
    const struct bfc_process *process = bfc_process_if_made();
    unsigned since = 0;
    if (!process || process->options.log < BFC_LOG_ERROR)
        return;
    enum speech speech = may_speak(&since);
    if (speech == A_LINE)
        bfc_log(BFC_LOG_ERROR,
                "out of memory again: %u time%s in the last minute or so, the last for %s on "
                "device %d",
                since, bfc_plural(since), BFC_BYTES(call->bytes), (int)call->arena->device);
    struct bfc_message *message = speech == ALL ? bfc_message_begin(MESSAGE) : NULL;
    if (!message)
        return;
    /* cancellation is disabled because opening files is a cancellation point */
    int cancel = bfc_cancel_disable();
    add_out_of_memory(message, call, &process->options);
    bfc_cancel_restore(cancel);
    bfc_message_end(message);
}

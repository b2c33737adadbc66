#include "interpose/features/who/samples.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/features/who/blocks.h"
#include "interpose/features/who/pace.h"
#include "interpose/features/who/sites.h"
#include "interpose/host/scratch.h"
#include "interpose/host/thread_exit.h"
#include "interpose/stats/events.h"
#include "interpose/table/feature.h"

/* The random generator and the distances to the next samples (pace.h) of one thread. The struct
 * itself is not thread-local, because the loader has little room for the thread-local variables of
 * a library that is opened late. */
struct sampling {
    struct bfc_pace paces[BFC_SIZE_BINS];
    uint64_t random;
};
static __thread struct sampling *sampling INITIAL_EXEC;
static __thread bool ends_at_exit INITIAL_EXEC;
static __thread bool busy INITIAL_EXEC; /* true while the thread records a sample, so that an
                                           allocation meanwhile is not sampled */

static void end_thread(void *unused) {
    (void)unused;
    bfc_scratch_end(sampling, sizeof *sampling);
    sampling = NULL;
    ends_at_exit = false;
}

static bool begin_thread(void) {
    if (!sampling && (sampling = bfc_scratch_begin(sizeof *sampling))) {
        sampling->random = (bfc_now_ns() ^ (uint64_t)sampling << 20) | 1;
        bfc_at_thread_exit(&ends_at_exit, end_thread);
    }
    return sampling;
}

/* Returns the time of the thread's last event (interpose/stats/events.h) in ticks of
 * BFC_PACE_TICK_LOG, which costs no reading of a clock. */
static uint64_t current_tick(void) {
    return bfc_event_us(bfc_events_thread.when) >> BFC_PACE_TICK_LOG;
}

/* To be called when the countdown to the next sample has ended in a class of sizes: returns how
 * many blocks the present block stands for; 0 if the block is no sample. */
static double weigh_sample(int stacks, unsigned bin) {
    if (stacks == BFC_STACKS_ALL || !begin_thread()) {
        bfc_allocations_until_sample[bin] = 0;
        return stacks == BFC_STACKS_ALL;
    }
    return bfc_pace_weigh(&sampling->paces[bin], &bfc_allocations_until_sample[bin], bin,
                          current_tick(), &sampling->random);
}

struct sample {
    uint64_t address, id; /* address and id of the block */
    uint64_t bytes;       /* the size that the program asked for */
    double weight;        /* how many blocks the sample stands for */
    uint64_t arena;       /* sequence number of the arena that has the block */
    uint32_t site;
};

enum { SAMPLES = BFC_MARKS, RECENT = BFC_MARKS, CHECKED_A_SAMPLE = 2 };

/* bfc_who_lock guards the samples, the ring of the last samples, and their counts. */
static struct sample *samples;
static struct bfc_who_mark *recent; /* a ring buffer of the last samples */
/* how many samples there are, and the index of the sample that check_some looks at next */
static size_t count, hand;
static uint64_t taken, lost;
static uint32_t state; /* atomic: whether the arrays of samples exist */
enum { NOT_BEGUN, BEGUN, UNAVAILABLE };

static bool is_live(const struct bfc_arena *arena, const struct sample *sample) {
    struct bfc_block_info block;
    return bfc_pool_find(arena->pool, sample->address, &block) && block.live &&
           block.start == sample->address && block.id == sample->id;
}

static void drop_sample(size_t i) {
    samples[i] = samples[--count];
}

/* Looks up the blocks of some of the arena's samples, and drops the samples of freed blocks. */
static void check_some(const struct bfc_arena *arena) {
    for (int i = 0; i < CHECKED_A_SAMPLE && count; i++) {
        hand = hand < count ? hand : 0;
        if (samples[hand].arena == arena->sequence && !is_live(arena, &samples[hand]))
            drop_sample(hand);
        else
            hand++;
    }
}

/* The bit that marks a sample whose block is still in use, in the sample's `arena`. Samples of
 * contexts that have ended get no mark, because the marks are set by a loop over the existing
 * arenas. */
#define LIVE UINT64_C(0x8000000000000000)

static void mark_live(const struct bfc_arena *arena) {
    for (size_t i = 0; i < count; i++)
        if (samples[i].arena == arena->sequence && is_live(arena, &samples[i]))
            samples[i].arena |= LIVE;
}

static void drop_unmarked(void) {
    for (size_t i = 0; i < count;) {
        bool marked = samples[i].arena & LIVE;
        samples[i].arena &= ~LIVE;
        if (marked)
            i++;
        else
            drop_sample(i);
    }
}

static void check_all(void) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena)))
        mark_live(arena);
    drop_unmarked();
}

static void add_sample(const struct sample *sample, uint64_t event) {
    struct bfc_who_site *site = &bfc_sites.sites[sample->site];
    recent[taken++ % RECENT] = (struct bfc_who_mark){.of = event, .site = sample->site};
    site->samples++;
    site->blocks += sample->weight;
    site->bytes += sample->weight * (double)sample->bytes;
    if (count == SAMPLES)
        check_all();
    if (count == SAMPLES)
        lost++;
    else
        samples[count++] = *sample;
}

static bool begin_sampling(void) {
    bool there = bfc_sites_begin();
    pool_lock(&bfc_who_lock);
    if (state == NOT_BEGUN) {
        samples = there ? bfc_scratch_begin(SAMPLES * sizeof *samples) : NULL;
        recent = samples ? bfc_scratch_begin(RECENT * sizeof *recent) : NULL;
        bfc_store_release(&state, recent ? BEGUN : UNAVAILABLE);
    }
    pool_unlock(&bfc_who_lock);
    return recent;
}

static int wanted_stacks(void) {
    const struct bfc_process *process = bfc_process_if_made();
    if (!process || bfc_load_acquire(&state) == UNAVAILABLE)
        return BFC_STACKS_OFF;
    if (process->options.summary == BFC_SUMMARY_LEAKS)
        return BFC_STACKS_ALL;
    return process->options.stats ? process->options.stacks : BFC_STACKS_OFF;
}

/* Not inlined, so that a thread's stack holds the large frame only while a sample is taken. */
static NOINLINE void take_sample(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes,
                                 double weight) {
    struct bfc_block_info block;
    struct bfc_stack stack;
    /* the number of the event that recorded this allocation, which is the thread's last event */
    uint64_t event = bfc_events_thread.event - 1;
    bfc_who_take_stack(&stack);
    if (!bfc_pool_find(arena->pool, pointer, &block) &&
        (!(arena = bfc_arena_of(pointer)) || !bfc_pool_find(arena->pool, pointer, &block)))
        return; /* no pool has the address any more: the block was spilled, and another thread has
                   meanwhile ended its context */
    uint32_t site = bfc_who_enter_at_site(&stack);
    struct sample sample = {.address = pointer,
                            .id = block.id,
                            .bytes = bytes,
                            .weight = weight,
                            .arena = arena->sequence,
                            .site = site};
    check_some(arena);
    add_sample(&sample, event);
    pool_unlock(&bfc_who_lock);
    BFC_TELL_FEATURES(stack_taken, pointer, site, weight, bfc_sites_now);
}

/* Code of Python that runs while a sample is taken may allocate; `busy` prevents a sample of
 * that. */
static void sample_if_due(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes,
                          unsigned bin) {
    int stacks = wanted_stacks();
    if (stacks == BFC_STACKS_OFF || (bfc_load_acquire(&state) != BEGUN && !begin_sampling())) {
        bfc_allocations_until_sample[bin] = BFC_NO_SAMPLE_SOON;
        return;
    }
    busy = true;
    double weight = weigh_sample(stacks, bin);
    if (weight > 0)
        take_sample(arena, pointer, bytes, weight);
    busy = false;
}

void bfc_who_look(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes, unsigned bin) {
    int reason = errno;
    if (busy)
        bfc_allocations_until_sample[bin]++;
    else
        sample_if_due(arena, pointer, bytes, bin);
    errno = reason;
}

static void sum_up(void) {
    for (size_t i = 0; i < bfc_sites.site_count; i++) {
        struct bfc_who_site *site = &bfc_sites.sites[i];
        site->live_samples = 0;
        site->live_blocks = site->live_bytes = site->live_variance = 0;
    }
    for (size_t i = 0; i < count; i++) {
        const struct sample *sample = &samples[i];
        struct bfc_who_site *site = &bfc_sites.sites[sample->site];
        double bytes = (double)sample->bytes, weight = sample->weight;
        site->live_samples++;
        site->live_blocks += weight;
        site->live_bytes += weight * bytes;
        site->live_variance += bytes * bytes * weight * (weight - 1);
    }
}

static uint64_t requested_bytes(void) {
    struct bfc_pool_stats stats;
    struct bfc_arena *arena = NULL;
    uint64_t sum = 0;
    while ((arena = bfc_arena_next(arena))) {
        bfc_pool_read_stats(arena->pool, &stats);
        sum += stats.requested;
    }
    return sum;
}

bool bfc_who_bring_up_to_date(struct bfc_who_header *header) {
    if (bfc_load_acquire(&state) != BEGUN)
        return false;
    pool_lock(&bfc_who_lock);
    check_all();
    sum_up();
    *header = (struct bfc_who_header){.stacks = (uint64_t)wanted_stacks(),
                                      .samples = taken,
                                      .lost = lost,
                                      .in_use = requested_bytes()};
    pool_unlock(&bfc_who_lock);
    return true;
}

uint32_t bfc_who_site_of(uint64_t id) {
    for (size_t i = 0; i < count; i++)
        if (samples[i].id == id)
            return samples[i].site;
    return 0;
}

static void copy_marks(struct bfc_blocks *blocks) {
    uint64_t first = taken > RECENT ? taken - RECENT : 0;
    for (size_t i = 0; i < count; i++)
        blocks->living[blocks->living_count++] =
            (struct bfc_who_mark){.of = samples[i].id, .site = samples[i].site};
    for (uint64_t i = first; i < taken; i++)
        blocks->recent[blocks->recent_count++] = recent[i % RECENT];
}

/* Writes the file of layout/who.h without holding bfc_who_lock: the tables only grow, and below a
 * count that was copied under the lock nothing changes but the sums over samples. */
static void write_now(struct bfc_who_header *header, struct bfc_blocks *blocks) {
    pool_lock(&bfc_who_lock);
    header->executable = bfc_sites_executable();
    struct bfc_sites now = bfc_sites;
    if (blocks)
        copy_marks(blocks);
    pool_unlock(&bfc_who_lock);
    bfc_who_write_file(&now, header, blocks);
}

void bfc_who_write(bool wants_blocks) {
    struct bfc_who_header header = {0};
    bool sampled = bfc_who_bring_up_to_date(&header);
    if (!wants_blocks && sampled)
        write_now(&header, NULL);
    if (!wants_blocks || !bfc_sites_begin())
        return;
    struct bfc_blocks *blocks = bfc_scratch_begin(sizeof *blocks);
    if (!blocks)
        return;
    header.stacks = (uint64_t)wanted_stacks();
    bfc_blocks_list(blocks);
    write_now(&header, blocks);
    bfc_scratch_end(blocks, sizeof *blocks);
}

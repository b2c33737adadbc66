#include "interpose/features/watch/watching.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/percentage.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/features/common/message.h"
#include "interpose/stats/published_segment.h"
#include "segment/figures.h"
#include "segment/kinds.h"

#define MESSAGE 4096u
/* A number and the ending of what is counted, as in "%llu free%s". */
#define COUNTED(count) (unsigned long long)(count), bfc_plural(count)
#define SHARE(share) bfc_share_text(share, (char[BFC_SHARE_TEXT]){0}, BFC_SHARE_TEXT)

static void add_spilled(struct bfc_message *message, const struct bfc_segment_pool *section) {
    const struct bfc_pool_stats *stats = &section->stats;
    bfc_message_add(
        message,
        "  device %lld: %llu allocation%s spilled to host memory (BFC_SPILL=%s), most %s, now %s "
        "in %llu block%s\n",
        (long long)section->device, COUNTED(stats->allocations), BFC_BYTES(section->device_total),
        BFC_BYTES(stats->peak_in_use), BFC_BYTES(stats->in_use), COUNTED(stats->blocks));
}

/* Adds to the summary what a pool of device memory did, and what it saved: without the pool, each
 * allocation and each free would have been a driver call, and the host would have waited in each
 * free. */
static void add_pool(struct bfc_message *message, const struct bfc_segment_pool *section) {
    if (section->memory == BFC_MEMORY_HOST) {
        add_spilled(message, section);
        return;
    }
    const struct bfc_pool_stats *stats = &section->stats;
    uint64_t cached = bfc_pool_cached(stats), calls = stats->allocations + stats->frees;
    uint64_t driver_calls = bfc_pool_driver_calls(section);
    uint64_t waits = bfc_host_waits(section) + stats->waits;
    bfc_message_add(message, "  device %lld: %llu allocation%s, %llu free%s; hit rate %s\n",
                    (long long)section->device, COUNTED(stats->allocations), COUNTED(stats->frees),
                    SHARE(bfc_pool_hit_rate(stats)));
    bfc_message_add(message,
                    "    driver calls %llu instead of %llu; host waits %llu instead of %llu\n",
                    (unsigned long long)driver_calls, (unsigned long long)calls,
                    (unsigned long long)waits, (unsigned long long)stats->frees);
    bfc_message_add(message, "    most in use %s (asked for %s), most reserved %s\n",
                    BFC_BYTES(stats->peak_in_use), BFC_BYTES(stats->peak_requested),
                    BFC_BYTES(stats->peak_reserved));
    bfc_message_add(message, "    now %s in use, %s cached", BFC_BYTES(stats->in_use),
                    BFC_BYTES(cached));
    double fragmentation = bfc_pool_fragmentation(section);
    if (fragmentation > 0)
        bfc_message_add(message, "; %s of the ready memory in pieces too small for %s",
                        SHARE(fragmentation), BFC_BYTES(section->fit.request));
    bfc_message_add(message, "\n");
    if (stats->out_of_memory || stats->retries)
        bfc_message_add(message, "    %llu out of memory, %llu saved by last resorts\n",
                        (unsigned long long)stats->out_of_memory,
                        (unsigned long long)stats->retries);
    if (stats->invalid_frees)
        bfc_message_add(message,
                        "    invalid frees: %llu, of blocks freed before or of addresses inside "
                        "blocks (BFC_SUMMARY=leaks tells where)\n",
                        (unsigned long long)stats->invalid_frees);
}

static const char *bypass_name(unsigned kind) {
    const char *name = bfc_bypass_kind_name((enum bfc_bypass_kind)kind);
    return name ? name : "other";
}

static void add_coverage(struct bfc_message *message, const struct bfc_segment_header *counters) {
    unsigned long long forwarded = 0;
    for (unsigned i = 0; i < BFC_FORWARD_REASONS; i++)
        forwarded += counters->forwarded_allocations[i];
    bfc_message_add(message, "  not pooled: %llu allocation%s forwarded", COUNTED(forwarded));
    if (counters->forwarded_frees[BFC_FORWARD_FOREIGN])
        bfc_message_add(message, ", %llu free%s of foreign addresses",
                        COUNTED(counters->forwarded_frees[BFC_FORWARD_FOREIGN]));
    if (counters->forwarded_frees[BFC_FORWARD_REFUSED])
        bfc_message_add(message, ", %llu free%s that the driver refused",
                        COUNTED(counters->forwarded_frees[BFC_FORWARD_REFUSED]));
    for (unsigned i = 0; i < BFC_BYPASS_KINDS; i++)
        if (counters->bypassed_calls[i])
            bfc_message_add(message, ", %s %llu (%s)", bypass_name(i),
                            (unsigned long long)counters->bypassed_calls[i],
                            BFC_BYTES(counters->bypassed_bytes[i]));
    bfc_message_add(message, "\n");
}

/* Adds to the summary the pools whose figures are in the segment, which include those of ended
 * contexts; without a segment, the pools of the contexts that still exist. */
static void add_pools(struct bfc_message *message) {
    const struct bfc_segment_header *published = bfc_segment_published();
    struct bfc_pool_stats stats;
    struct bfc_arena *arena = NULL;
    bfc_fragmentation_measure();
    while ((arena = bfc_arena_next(arena))) {
        bfc_pool_read_stats(arena->pool, &stats); /* this also updates the section's largest_free */
        if (!arena->stats.segment)
            add_pool(message, arena->stats.section);
    }
    for (unsigned i = 0; published && i < BFC_SEGMENT_POOLS; i++) {
        const struct bfc_segment_pool *section = &bfc_segment_sections_of(published)[i];
        if (section->state != BFC_POOL_UNUSED)
            add_pool(message, section);
    }
}

void bfc_summary_at_exit(const struct bfc_process *process) {
    struct bfc_message *message = NULL;
    if (process->options.summary && process->options.log >= BFC_LOG_ERROR)
        message = bfc_message_begin(MESSAGE);
    if (!message)
        return;
    bfc_message_add(message, "bfcpreload: summary of process %d (%s)\n", (int)getpid(),
                    program_invocation_short_name);
    bfc_message_add_rank(message);
    add_pools(message);
    add_coverage(message, bfc_segment_counters());
    bfc_message_end(message);
}

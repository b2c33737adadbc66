/* The feature `spill`: host memory for allocations that do not fit on the device (BFC_SPILL). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/open_file.h"
#include "base/sizes.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/features/common/message.h"
#include "interpose/features/spill/host_memory.h"
#include "interpose/features/spill/spill.h"
#include "interpose/table/feature.h"

struct spilled {
    uint64_t in_use, reserved, limit;
};

static struct spilled sum_spilled(void) {
    struct spilled sum = {0};
    struct bfc_arena *host = NULL;
    struct bfc_pool_stats stats;
    while ((host = bfc_arena_next_host(host))) {
        bfc_pool_read_stats(host->pool, &stats);
        sum.in_use += stats.in_use;
        sum.reserved += stats.reserved;
        sum.limit = host->limit;
    }
    return sum;
}

static void explain_spilled(struct bfc_message *message) {
    struct spilled sum = sum_spilled();
    if (sum.limit)
        bfc_message_add(
            message,
            "  spilled      %s of host memory in use, %s of at most %s pinned (BFC_SPILL)\n",
            BFC_BYTES(sum.in_use), BFC_BYTES(sum.reserved), BFC_BYTES(sum.limit));
}

/* Returns how many bytes the host can still provide, by the kernel's estimate; 0: not known. */
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

static bool advise_spilling(struct bfc_message *message, const struct bfc_call *call) {
    const struct bfc_process *process = bfc_process_if_made();
    uint64_t size = (sum_spilled().reserved + call->bytes + MIB - 1) / MIB * MIB;
    if (!process || call->in_pool || process->options.spill >= size ||
        !(process->options.last_resort >> BFC_RUNG_SPILL & 1) ||
        !bfc_host_memory_can_be_had(call->driver, call->arena->device) ||
        call->bytes > host_available())
        return false;
    bfc_message_add(message,
                    "BFC_SPILL=%lluM: in host memory, which is slower, this request would have "
                    "fitted\n",
                    (unsigned long long)(size / MIB));
    return true;
}

static const struct bfc_feature spill = {
    .name = "spill",
    .slot = &bfc_host_left_slot,
    .arena_freed = bfc_host_left_arena_freed,
    .context_ending = bfc_host_left_note,
    .context_kept = bfc_host_left_forget,
    .context_ended = bfc_host_left_add,
    .contexts_forgotten = bfc_host_left_collect,
    .freed = bfc_spill_freed,
    .resorts = {{.rung = BFC_RUNG_SPILL,
                 .event = BFC_EVENT_SPILLED,
                 .may_serve = bfc_spill_may_serve,
                 .serve = bfc_spill_serve}},
    .explain_holders = explain_spilled,
    .advise = advise_spilling,
};
BFC_REGISTER_FEATURE(spill);

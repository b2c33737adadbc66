// How often each function was called, and SIM_STATS. Guarded by the lock.
#include "sim/border/stats.h"

#include "sim/base/call.h"
#include "sim/base/counts.h"
#include "sim/base/lock.h"
#include "sim/base/options.h"
#include "sim/base/refuse.h"
#include "sim/memory/ranges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sim_call *calls;

void sim_stats_introduce(struct sim_call *call) {
    if (!call->known) {
        call->known = true;
        struct sim_latency latency = sim_latency_of(call->name);
        call->latency_us = latency.us;
        call->latency_us_per_mib = latency.us_per_mib;
        call->need = sim_need_of(call->name);
        call->codes = sim_codes_of(call->name);
        call->next = calls;
        calls = call;
    }
}

void sim_stats_count(struct sim_call *call) {
    sim_lock_take();
    sim_options_read();
    sim_stats_introduce(call);
    call->count++;
    sim_lock_give();
}

static struct sim_call *unmodelled_named(const char *name) {
    struct sim_call *call = calls;
    while (call != NULL && !(call->unmodelled && strcmp(call->name, name) == 0)) {
        call = call->next;
    }
    return call;
}

// The runtime may be unloaded, so its names are copied.
static struct sim_call *unmodelled_new(const char *name) {
    struct sim_call *call = calloc(1, sizeof *call);
    char *copy = strdup(name);
    if (call == NULL || copy == NULL) {
        free(call);
        free(copy);
        return NULL;
    }
    *call = (struct sim_call){.name = copy, .unmodelled = true};
    sim_stats_introduce(call);
    return call;
}

void sim_unmodelled_call(const char *name) {
    sim_lock_take();
    sim_options_read();
    struct sim_call *call = unmodelled_named(name);
    call = call != NULL ? call : unmodelled_new(name);
    if (call != NULL) {
        call->count++;
    }
    sim_lock_give();
}

static unsigned long long count_of(const char *name) {
    for (struct sim_call *call = calls; call != NULL; call = call->next) {
        if (strcmp(call->name, name) == 0) {
            return call->count;
        }
    }
    return 0;
}

unsigned long long sim_call_count(const char *name) {
    sim_lock_take();
    unsigned long long count = strcmp(name, "total") == 0            ? sim_counts.total
                               : strcmp(name, "waits") == 0          ? sim_counts.waits
                               : strcmp(name, "blocked_waits") == 0  ? sim_counts.blocked_waits
                               : strcmp(name, "spinning_waits") == 0 ? sim_counts.spinning_waits
                               : strcmp(name, "event_records") == 0  ? sim_counts.records
                               : strcmp(name, "device_waits") == 0   ? sim_counts.device_waits
                               : strcmp(name, "late") == 0           ? sim_counts.late
                               : strcmp(name, "trespasses") == 0     ? sim_counts.trespasses
                               : strcmp(name, "stale") == 0          ? sim_counts.stale
                               : strcmp(name, "pinned") == 0         ? sim_pinned_bytes()
                                                                     : count_of(name);
    sim_lock_give();
    return count;
}

static void print_calls(FILE *file, const char *key, bool unmodelled) {
    const char *between = "";
    fprintf(file, "\"%s\": {", key);
    for (const struct sim_call *call = calls; call != NULL; call = call->next) {
        if (call->unmodelled == unmodelled) {
            fprintf(file, "%s\"%s\": %llu", between, call->name, call->count);
            between = ", ";
        }
    }
    fputs("}", file);
}

static void print_stats(FILE *file) {
    fprintf(file,
            "{\"pid\": %ld, \"total\": %llu, \"cuMemAlloc\": %llu, \"cuMemFree\": %llu, "
            "\"cuCtxSynchronize\": %llu, \"event_records\": %llu, \"device_waits\": %llu, "
            "\"waits\": %llu, \"blocked_waits\": %llu, \"spinning_waits\": %llu, ",
            (long)getpid(), sim_counts.total, count_of("cuMemAlloc_v2"), count_of("cuMemFree_v2"),
            count_of("cuCtxSynchronize") + count_of("cuCtxSynchronize_v2"), sim_counts.records,
            sim_counts.device_waits, sim_counts.waits, sim_counts.blocked_waits,
            sim_counts.spinning_waits);
    print_calls(file, "calls", false);
    fputs(", ", file);
    print_calls(file, "unmodelled", true);
    fputs("}\n", file);
}

void sim_stats_write(void) {
    if (sim_options.stats == NULL) {
        return;
    }
    char *line = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&line, &size);
    if (memory == NULL) {
        return;
    }
    print_stats(memory);
    fclose(memory);
    // One write, so that processes may share the file.
    int file = open(sim_options.stats, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, size) != (ssize_t)size) {
        fprintf(stderr, "sim: SIM_STATS=%s: %s\n", sim_options.stats, strerror(errno));
    }
    if (file >= 0) {
        close(file);
    }
    free(line);
}

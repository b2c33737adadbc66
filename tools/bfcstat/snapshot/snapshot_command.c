/* bfcstat snapshot: writes a job's blocks and last allocations and frees to a file, as a memory
 * snapshot for PyTorch's viewers or as counters for Perfetto. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/bfcstat/snapshot/write_snapshot.h"
#include "tools/plan/common/whole_file.h"
#include "tools/text/print_text.h"

/* How many milliseconds bfcstat waits for the job's list of its blocks. For a million blocks the
 * job needs a second. */
#define ANSWER_MS 20000

/* How long to wait, in nanoseconds, between two readings of the shared-memory segment's ring of
 * 4,096 events, which a busy job soon overwrites. */
#define POLL_NS (10L * 1000 * 1000)

static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

static int refuse_snapshot(const char *reason) {
    fprintf(stderr, "bfcstat: %s\n", reason);
    return REFUSED;
}

struct target {
    int directory;
    struct bfc_segment_name name;
    struct bfc_job job; /* the last copy of the job's shared-memory segment */
    /* why the shared-memory segment could not be read or the job did not answer, for the message */
    char reason[512];
};

static bool read_again(struct target *target) {
    static struct bfc_job copy;
    if (bfc_segment_read(target->directory, &target->name, &copy, target->reason,
                         sizeof target->reason) != BFC_READ_OK)
        return false;
    target->job = copy;
    return true;
}

static bool ask_job(struct target *target, struct bfc_who *who) {
    return bfc_who_ask(target->directory, &target->name, ANSWER_MS, true, who, target->reason,
                       sizeof target->reason);
}

/* Adds the job's allocations and frees to `calls` for `seconds`, or until ^C is pressed or the job
 * ends. */
static void follow_job(struct target *target, struct calls *calls, double seconds) {
    struct sigaction action = {.sa_handler = on_signal};
    uint64_t end = bfc_now_ns() + (uint64_t)(seconds * 1e9);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    while (!interrupted && !calls->failed && bfc_now_ns() < end && read_again(target) &&
           target->job.state != BFC_JOB_ENDED) {
        calls_add(calls, &target->job);
        bfc_nap(POLL_NS);
    }
}

/* Collects the allocations and frees of the next `seconds`, and then asks the job which call stacks
 * hold its memory. False: target->reason says why. */
static bool collect_calls(struct target *target, double seconds, struct calls *calls,
                          struct bfc_who *who) {
    struct bfc_who before;
    bool good = ask_job(target, &before);
    if (good)
        calls_begin(calls, &target->job, &before);
    bfc_who_free(&before);
    if (!good)
        return false;
    follow_job(target, calls, seconds);
    good = ask_job(target, who) && read_again(target);
    if (good)
        calls_add(calls, &target->job);
    return good;
}

static bool collect_last_calls(struct target *target, struct calls *calls, struct bfc_who *who) {
    static struct bfc_job earlier;
    earlier = target->job;
    bool good = ask_job(target, who) && read_again(target);
    if (good)
        calls_begin_before(calls, &earlier, who, &target->job);
    return good;
}

/* Collects the allocations and frees of the next `seconds`, or, if `seconds` is 0, the last ones
 * that the shared-memory segment has; and the job's list of its blocks. The caller frees `calls`
 * and `who` in any case. False: target->reason says why. */
static bool collect_moment(struct target *target, double seconds, struct calls *calls,
                           struct bfc_who *who) {
    bool good = read_again(target) && (seconds > 0 ? collect_calls(target, seconds, calls, who)
                                                   : collect_last_calls(target, calls, who));
    if (good)
        calls_finish(calls, who);
    return good;
}

static void tell_unless_0(uint64_t count, const char *what) {
    char figure[TEXT_FIGURE];
    if (count)
        printf("  %s %s\n", text_count(count, figure, sizeof figure), what);
}

static uint64_t count_without_stack(const struct calls *calls) {
    uint64_t count = 0;
    for (size_t i = 0; i < calls->count; i++)
        count += bfc_event_kind_of(calls->list[i].event.what) == BFC_EVENT_ALLOCATE &&
                 !calls->list[i].site;
    return count;
}

/* Returns a sentence that says why some allocations in the snapshot have no call stack: the job
 * does not record all call stacks, or has kept only the latest, or the allocations came after the
 * job had answered which call stacks it has. */
static const char *why_without_stack(const struct bfc_who_header *header) {
    if (header->stacks != 2)
        return "allocations without a stack: BFC_STACKS=all takes all";
    return header->samples > header->recent
               ? "allocations without a stack: it is not kept any more, or was not told yet"
               : "allocations without a stack: they came after the job had told its stacks";
}

static void report_gaps(const struct request *request, const struct moment *moment) {
    const struct calls *calls = moment->calls;
    const struct bfc_who_header *header = &moment->who->header;
    char blocks[TEXT_FIGURE], events[TEXT_FIGURE], left[TEXT_FIGURE];
    printf("process %d in %s: %s block%s, %s call%s\n", header->pid, request->output,
           text_count(header->blocks, blocks, sizeof blocks), bfc_plural(header->blocks),
           text_count(calls->count, events, sizeof events), bfc_plural(calls->count));
    tell_unless_0(count_without_stack(calls), why_without_stack(header));
    tell_unless_0(calls->untold, "frees left out: of blocks that are older than the calls");
    tell_unless_0(calls->dropped, "calls dropped: the oldest, since 1,000,000 are kept");
    tell_unless_0(calls->unseen.lost, "calls lost, at most: they came too fast to be read");
    if (header->left_out)
        printf("  regions of %s left out: there was no room\n",
               bfc_bytes_text(header->left_out, left, sizeof left));
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static bool write_file(struct moment *moment, FILE *file, bool as_json) {
    if (as_json)
        write_chrome_trace(moment, file);
    return as_json || write_pickle(moment, file);
}

static int write_out(const struct request *request, struct moment *moment) {
    struct plan_error error;
    struct file_writer writer;
    file_drop_at_signals();
    if (!file_open(&writer, request->output, &error))
        return refuse_snapshot(error.text);
    if (!write_file(moment, writer.stream, ends_with(request->output, ".json")) &&
        !ferror(writer.stream)) {
        file_abandon(&writer);
        return refuse_snapshot("out of memory");
    }
    if (!file_close(&writer, &error))
        return refuse_snapshot(error.text);
    report_gaps(request, moment);
    return SHOWN;
}

static int show_moment(const struct request *request, struct target *target,
                       const struct calls *calls, const struct bfc_who *who) {
    struct moment moment = {.job = &target->job, .who = who, .calls = calls};
    bool good = who_names_begin(&moment.names, who, target->name.pid) && !calls->failed;
    int status = good ? write_out(request, &moment) : refuse_snapshot("out of memory");
    who_names_end(&moment.names);
    return status;
}

int run_snapshot(const struct request *request, int directory) {
    static struct target target;
    struct bfc_who who = {0};
    static struct calls calls;
    if (!ends_with(request->output, ".pickle") && !ends_with(request->output, ".json")) {
        refuse_snapshot(
            "snapshot: -o takes a name that ends in .pickle, for PyTorch's viewers, or in "
            ".json, for Perfetto");
        return MISUSED;
    }
    int status = find_target(directory, request->directory, request->target, &target.name);
    if (status != SHOWN)
        return status;
    target.directory = directory;
    status = collect_moment(&target, request->duration, &calls, &who)
                 ? show_moment(request, &target, &calls, &who)
                 : refuse_snapshot(target.reason);
    calls_free(&calls);
    bfc_who_free(&who);
    return status;
}

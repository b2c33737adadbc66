/*
 * bfcstat record: copies a job's counters from its segment (shared-memory file) to a file at
 * intervals, as lines of JSON.
 *
 * Each line has a type: `start` (which job it is), `sample` (memory, and new events other than
 * allocations and frees), `map` (which parts of the regions are in use), `sizes` (histograms),
 * `sites` (call stacks), `who` (how much memory each call stack holds), `taken` (the call stacks of
 * single allocations), `events` (an allocation that failed, and the events before it), `calls` (all
 * allocations and frees, if --events was given) and `end`. If bfcstat was killed, the last lines
 * are missing and the others are valid. docs/bfcstat.md has the keys.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/bfcstat/event_order.h"
#include "tools/bfcstat/new_events.h"
#include "tools/bfcstat/record/record_who.h"
#include "tools/bfcstat/view/json_detail.h"
#include "tools/report/call_lines.h"
#include "tools/text/print_text.h"

#define EVENTS_BEFORE_FAILURE 256u
#define FAILURES_A_SAMPLE 8

/* Seconds between two lines of the types `map`, `sizes` and `who`. These lines are large, so they
 * are written less often than samples. */
#define MAP_SECONDS 0.5
#define SIZES_SECONDS 10.0
#define WHO_SECONDS 10.0

/* With --events, seconds between two readings of the shared-memory segment's ring of 4,096 events,
 * which a busy job soon overwrites. The job's own times of events may be too early (time_event), so
 * the recorded times are exact only to this interval. */
#define LOOK_SECONDS 0.01

static volatile sig_atomic_t interrupted;

struct recording {
    FILE *file;
    uint64_t start_ns; /* when the recording began, by the monotonic clock */
    double next_map, next_sizes, next_who;
    struct recorded_who who;
    /* Number of the first landmark that is not written yet. A landmark is an event that is neither
     * an allocation nor a free. */
    uint64_t next_landmark;
    /* tells which events of the next copy of the shared-memory segment are new */
    struct new_events unseen;
    struct event_order *order; /* puts allocations and frees of several threads into order */
    /* Whether the job was asked for the list of its blocks in use, with which the ordering of
     * events begins. True even if the job did not answer: events are then ordered without the list.
     */
    bool ordered;
    /* When the shared-memory segment was last copied (`looks_us`), and when it was copied before
     * that (`looked_us`), in microseconds by the job's clock. */
    uint64_t looked_us, looks_us;
    /* When the job's shared-memory segment was created. The job's clock counts microseconds from
     * then on. */
    uint64_t created_ns;
    bool events; /* whether all allocations and frees are written (--events) */
    unsigned long samples;
    int failure; /* errno of a write that failed; 0: no write has failed */
};

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

static double seconds_since(uint64_t start_ns) {
    return (double)(bfc_now_ns() - start_ns) / 1e9;
}

/* Returns the time now by the clock of the job's events: microseconds since the job's shared-memory
 * segment was created. */
static uint64_t job_us(const struct recording *recording) {
    return bfc_subtract_saturating(bfc_wall_clock_ns(), recording->created_ns) / 1000;
}

static struct json_writer begin_line(const struct recording *recording, const char *type,
                                     double seconds) {
    struct json_writer json = json_writer_init(recording->file);
    json.compact = true;
    json_object(&json, NULL);
    json_string(&json, "type", type);
    json_number(&json, "seconds", seconds);
    json_unsigned(&json, "us", job_us(recording));
    return json;
}

static void write_start(const struct recording *recording, const struct bfc_job *job) {
    struct json_writer json = begin_line(recording, "start", 0);
    json_unsigned(&json, "format", REPORT_FORMAT);
    json_signed(&json, "pid", job->header.pid);
    json_string(&json, "command", job->header.command);
    json_string(&json, "library", job->header.library);
    json_unsigned(&json, "created_ns", job->header.created_ns);
    put_rank(&json, &job->header);
    json_string(&json, "configuration", job->header.configuration);
    json_object_end(&json);
}

static void put_sample(struct json_writer *json, const struct bfc_job *job, unsigned index) {
    const struct bfc_segment_pool *pool = &job->pools[index];
    const struct bfc_pool_stats *stats = &pool->stats;
    json_object(json, NULL);
    json_unsigned(json, "pool", index);
    json_string(json, "memory", bfc_pool_is_host(pool) ? "host" : "device");
    json_signed(json, "device", pool->device);
    json_string(json, "device_name", pool->device_name);
    json_unsigned(json, "device_total", pool->device_total);
    put_amounts(json, pool);
    json_unsigned(json, "asleep", pool->pages.asleep);
    json_unsigned(json, "allocations", stats->allocations);
    json_unsigned(json, "hits", stats->hits);
    json_unsigned(json, "misses", stats->misses);
    json_unsigned(json, "page_addresses", pool->pages.addresses);
    json_unsigned(json, "page_calls", pool->pages.calls);
    json_unsigned(json, "pages_moved", bfc_pages_moved(&pool->pages));
    json_unsigned(json, "waits", stats->waits);
    json_unsigned(json, "host_waits", pool->host_waits);
    json_unsigned(json, "out_of_memory", stats->out_of_memory);
    json_object_end(json);
}

/* Returns the index, in job->landmarks, of the first landmark that is not written to the file yet.
 * A landmark is an event that is neither an allocation nor a free. */
static size_t first_new_landmark(const struct recording *recording, const struct bfc_job *job) {
    size_t first = 0;
    while (first < job->landmark_count && job->landmarks[first].stamp <= recording->next_landmark)
        first++;
    return first;
}

/* Returns the index in job->events of a landmark (an event that is neither an allocation nor a
 * free), or job->event_count if newer events have overwritten it in that ring. Compares the
 * contents, because the same event has another number in job->landmarks than in job->events. */
static size_t find_event(const struct bfc_job *job, const struct bfc_event *landmark) {
    size_t i = job->event_count;
    while (i > 0 && (job->events[i - 1].what != landmark->what ||
                     job->events[i - 1].bytes != landmark->bytes ||
                     job->events[i - 1].address != landmark->address))
        i--;
    return i > 0 ? i - 1 : job->event_count;
}

/* Writes a failed allocation and the last events before it. If the failure is no longer among the
 * job's last events, writes the failure alone. */
static void write_events(const struct recording *recording, const struct bfc_job *job,
                         const struct bfc_event *failure, double seconds) {
    size_t at = find_event(job, failure);
    bool missed = at == job->event_count;
    size_t first = missed || at < EVENTS_BEFORE_FAILURE ? 0 : at - EVENTS_BEFORE_FAILURE;
    struct json_writer json = begin_line(recording, "events", seconds);
    put_events(&json, "of", failure, 1);
    json_boolean(&json, "missed", missed);
    put_events(&json, "events", job->events + first, missed ? 0 : at + 1 - first);
    json_object_end(&json);
}

/* Writes the allocations that failed since the last sample, at most FAILURES_A_SAMPLE, each with
 * the events before it. `first` is the index of the first landmark since that sample. Returns
 * whether any allocation failed. */
static bool write_failures(const struct recording *recording, const struct bfc_job *job,
                           size_t first, double seconds) {
    unsigned failures = 0;
    for (size_t i = first; i < job->landmark_count; i++)
        if (bfc_event_kind_of(job->landmarks[i].what) == BFC_EVENT_OUT_OF_MEMORY &&
            failures++ < FAILURES_A_SAMPLE)
            write_events(recording, job, &job->landmarks[i], seconds);
    return failures > 0;
}

/* Returns the letter by which lines of the type `calls` name a kind of event; 0: those lines leave
 * the kind out. */
static char call_kind(enum bfc_event_kind kind) {
    static const char letters[BFC_EVENT_KINDS] = {
        [BFC_EVENT_ALLOCATE] = 'a', [BFC_EVENT_FREE] = 'f',          [BFC_EVENT_GROW] = 'g',
        [BFC_EVENT_RELEASE] = 'r',  [BFC_EVENT_OUT_OF_MEMORY] = 'o', [BFC_EVENT_BEGIN] = 'b',
        [BFC_EVENT_END] = 'e',
    };
    return letters[kind];
}

static void put_call(struct report_calls *calls, const struct bfc_event *event) {
    char kind = call_kind(bfc_event_kind_of(event->what));
    if (kind)
        report_put_call(calls, &(struct report_call){.kind = kind,
                                                     .at = bfc_event_us(event->what),
                                                     .pool = bfc_event_pool(event->what),
                                                     .address = event->address,
                                                     .bytes = event->bytes,
                                                     .name = event->stamp ? event->stamp - 1 : 0});
}

static void write_ordered(struct recording *recording, size_t count) {
    struct report_calls calls = {.file = recording->file};
    for (size_t i = 0; i < count; i++)
        put_call(&calls, &recording->order->ordered[i]);
    report_end_calls(&calls, recording->unseen.lost);
}

/* Returns the event with its time corrected. An event that is new in this copy of the shared-memory
 * segment came after the previous copy, but may have an earlier time, because a thread reads the
 * clock only once for several events. Such an event gets the time of the previous copy. */
static struct bfc_event time_event(const struct recording *recording,
                                   const struct bfc_event *event) {
    struct bfc_event timed = *event;
    if (bfc_event_us(event->what) < recording->looked_us)
        timed.what = bfc_event_what(bfc_event_kind_of(event->what), bfc_event_pool(event->what),
                                    recording->looked_us);
    return timed;
}

/* Writes the events that are new in this copy of the shared-memory segment, in an order in which
 * they can have happened (event_order.h). An event that contradicts the earlier ones waits for the
 * next call, because an event between them may still be missing; if only one copy is recorded
 * (record_once), none waits. */
static void write_calls(struct recording *recording, const struct bfc_job *job) {
    uint64_t lost = recording->unseen.lost;
    for (size_t i = 0; i < job->event_count; i++) {
        struct bfc_event event = time_event(recording, &job->events[i]);
        if (new_events_take(&recording->unseen, &event))
            event_order_add(recording->order, &event);
    }
    if (recording->unseen.lost != lost)
        event_order_forget(recording->order);
    write_ordered(recording, event_order_round(recording->order, recording->who.space));
}

static void write_map(const struct recording *recording, const struct bfc_job *job,
                      double seconds) {
    struct json_writer json = begin_line(recording, "map", seconds);
    put_map(&json, job);
    json_object_end(&json);
}

static void write_sizes(const struct recording *recording, const struct bfc_job *job,
                        double seconds) {
    struct json_writer json = begin_line(recording, "sizes", seconds);
    json_array(&json, "pools");
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        if (job->pools[i].state != BFC_POOL_ACTIVE)
            continue;
        json_object(&json, NULL);
        json_unsigned(&json, "pool", i);
        put_histograms(&json, &job->pools[i]);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
}

/* Copies the job's shared-memory segment to `job`, and stores the time of the copy. False: the
 * segment could not be read. */
static bool read_changes(struct recording *recording, struct bfc_job *job) {
    char reason[512];
    uint64_t looks_us = job_us(recording);
    if (read_job(recording->who.directory, recording->who.name, job, reason, sizeof reason) !=
        BFC_READ_OK)
        return false;
    recording->looked_us = recording->looks_us;
    recording->looks_us = looks_us;
    return true;
}

/* Writes the allocations and frees until shortly after the job's answer `who`, which lists its
 * blocks in use. By this list it also corrects which addresses the order of events takes to be in
 * use. `before` is a copy of the shared-memory segment from before the job was asked. False: the
 * segment could not be read. */
static bool write_calls_until(struct recording *recording, const struct bfc_job *before,
                              const struct bfc_who *who) {
    static struct bfc_job job;
    bool first = !recording->ordered;
    recording->ordered = true;
    if (!read_changes(recording, &job))
        return false;
    if (first) {
        event_order_begin(recording->order, before, who, &job);
        new_events_begin(&recording->unseen, job.header.next_event);
    }
    write_calls(recording, &job);
    write_ordered(recording,
                  event_order_correct(recording->order, before, who, &job, recording->looks_us));
    return true;
}

/* Asks the job which call stacks hold its memory, and writes the answer. With --events, also writes
 * the allocations and frees up to that answer; returns whether it did. */
static bool write_who(struct recording *recording, const struct bfc_job *job) {
    struct bfc_who who;
    char reason[512];
    bool good = ask_recorded_who(&recording->who, &who, reason, sizeof reason);
    bool calls = good && recording->events && write_calls_until(recording, job, &who);
    recording->ordered |= !calls;
    put_recorded_who(&recording->who, good ? &who : NULL, reason, recording->file);
    bfc_who_free(&who);
    return calls;
}

/* Writes a sample, and the lines of other types that are due. The allocations and frees that are
 * counted in the sample are written before it: the report page subtracts them from the sample to
 * find out what was in use when the recording began. */
static void write_sample(struct recording *recording, const struct bfc_job *job) {
    double seconds = seconds_since(recording->start_ns);
    bool ordered = recording->ordered, written = false;
    if (recording->events && ordered)
        write_calls(recording, job);
    struct json_writer json = begin_line(recording, "sample", seconds);
    json_array(&json, "pools");
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (job->pools[i].state == BFC_POOL_ACTIVE)
            put_sample(&json, job, i);
    json_array_end(&json);
    put_sleep(&json, job);
    size_t first = first_new_landmark(recording, job);
    put_events(&json, "landmarks", job->landmarks + first, job->landmark_count - first);
    json_object_end(&json);
    bool failed = write_failures(recording, job, first, seconds);
    if (first < job->landmark_count)
        recording->next_landmark = job->landmarks[job->landmark_count - 1].stamp;
    recording->samples++;
    if (failed || seconds >= recording->next_map) {
        write_map(recording, job, seconds);
        recording->next_map = seconds + MAP_SECONDS;
    }
    if (seconds >= recording->next_sizes) {
        write_sizes(recording, job, seconds);
        recording->next_sizes = seconds + SIZES_SECONDS;
    }
    if (seconds >= recording->next_who) {
        written = write_who(recording, job);
        recording->next_who = seconds + WHO_SECONDS;
    }
    if (recording->events && !ordered && !written)
        write_calls(recording, job);
}

static void write_end(struct recording *recording, const struct bfc_job *job, const char *reason) {
    double seconds = seconds_since(recording->start_ns);
    if (recording->events)
        write_ordered(recording, event_order_round(recording->order, true));
    write_sizes(recording, job, seconds);
    struct json_writer json = begin_line(recording, "end", seconds);
    json_string(&json, "reason", reason);
    json_object_end(&json);
}

static void show_progress(const struct recording *recording, const struct bfc_job *job) {
    char in_use[TEXT_FIGURE];
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%.1f s, %lu samples, in use %s   ", seconds_since(recording->start_ns),
            recording->samples, bfc_bytes_text(job_totals(job).in_use, in_use, sizeof in_use));
    fflush(stderr);
}

/* Waits until the next sample is due. With --events, reads and writes events meanwhile. False: a
 * signal interrupted the wait. */
static bool pause_for(struct recording *recording, double seconds, struct bfc_job *next) {
    double until = seconds_since(recording->start_ns) + seconds, left = seconds;
    do {
        double nap = recording->events && left > LOOK_SECONDS ? LOOK_SECONDS : left;
        struct timespec pause = bfc_timespec((uint64_t)(nap * 1e9));
        if (interrupted || nanosleep(&pause, NULL) != 0)
            return false;
        left = until - seconds_since(recording->start_ns);
        if (recording->events && left > 0 && read_changes(recording, next))
            write_calls(recording, next);
    } while (left > 0);
    return true;
}

/* Writes samples until ^C, until the job ends, until --duration is over, or until a write fails.
 * Returns the reason in a word; NULL: a write failed. */
static const char *sample_until_end(struct recording *recording, const struct request *request,
                                    struct bfc_job *job) {
    double interval = request->interval > 0 ? request->interval : 0.25;
    double duration = request->duration > 0 ? request->duration : INFINITY;
    static struct bfc_job next;
    for (;;) {
        write_sample(recording, job);
        show_progress(recording, job);
        if (fflush(recording->file) != 0) {
            recording->failure = errno;
            return NULL;
        }
        if (job->state == BFC_JOB_ENDED)
            return "ended";
        if (seconds_since(recording->start_ns) >= duration)
            return "duration";
        if (!pause_for(recording, interval, &next))
            return "interrupted";
        if (!read_changes(recording, &next))
            return "ended";
        *job = next;
    }
}

static struct recording *begin_recording(FILE *file, bool events, int directory,
                                         const struct bfc_segment_name *name,
                                         const struct bfc_job *job) {
    static struct recording recording;
    static struct event_order order;
    recording = (struct recording){
        .file = file,
        .order = &order,
        .start_ns = bfc_now_ns(),
        .created_ns = job->header.created_ns,
        .who = {.directory = directory,
                .name = name,
                .created_ns = job->header.created_ns,
                .events = events,
                .next_event = bfc_subtract_saturating(job->header.next_event, BFC_EVENTS)},
        .events = events};
    new_events_begin(&recording.unseen, job->header.next_event);
    write_start(&recording, job);
    return &recording;
}

static int record_job(const struct request *request, int directory,
                      const struct bfc_segment_name *name, struct bfc_job *job) {
    struct sigaction action = {.sa_handler = on_signal};
    FILE *file = fopen(request->output, "we");
    if (!file) {
        fprintf(stderr, "bfcstat: %s: %s\n", request->output, strerror(errno));
        return REFUSED;
    }
    struct recording *recording = begin_recording(file, request->events, directory, name, job);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    const char *reason = sample_until_end(recording, request, job);
    if (reason && job->state != BFC_JOB_ENDED)
        write_who(recording, job);
    if (reason)
        write_end(recording, job, reason);
    bool failed = !reason || ferror(recording->file);
    failed |= fclose(recording->file) != 0;
    int why = recording->failure ? recording->failure : errno;
    if (isatty(STDERR_FILENO))
        fputc('\n', stderr);
    if (failed) {
        fprintf(stderr, "bfcstat: %s: %s\n", request->output, strerror(why));
        return REFUSED;
    }
    printf("%lu samples of process %d in %s (%s)\n", recording->samples, name->pid, request->output,
           reason);
    return SHOWN;
}

static int find_job(const struct request *request, int directory, struct bfc_segment_name *name,
                    struct bfc_job *job) {
    char reason[512];
    int status = find_target(directory, request->directory, request->target, name);
    if (status != SHOWN || read_job(directory, name, job, reason, sizeof reason) == BFC_READ_OK)
        return status;
    fprintf(stderr, "bfcstat: %s\n", reason);
    return REFUSED;
}

int run_record(const struct request *request, int directory) {
    static struct bfc_job job;
    struct bfc_segment_name name;
    int status = find_job(request, directory, &name, &job);
    return status == SHOWN ? record_job(request, directory, &name, &job) : status;
}

int record_once(const struct request *request, int directory, FILE *file) {
    static struct bfc_job job;
    struct bfc_segment_name name;
    int status = find_job(request, directory, &name, &job);
    if (status != SHOWN)
        return status;
    struct recording *recording = begin_recording(file, true, directory, &name, &job);
    recording->who.space = true;
    write_sample(recording, &job);
    write_end(recording, &job, "once");
    if (fflush(file) == 0 && !ferror(file))
        return SHOWN;
    int why = recording->failure ? recording->failure : errno;
    fprintf(stderr, "bfcstat: a temporary file: %s\n", strerror(why));
    return REFUSED;
}

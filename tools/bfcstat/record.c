/*
 * bfcstat record: samples a job's segment into a file, a line of JSON at a time.
 *
 * Each line has a type: `start` (which job it is), `sample` (memory, and new landmarks), `map`,
 * `sizes`, `events` (those before an out of memory) and `end`. If the recorder was killed, the last
 * lines are missing; the rest is valid. docs/bfcstat.md has the keys.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/bfcstat/view/json_detail.h"
#include "tools/text/text.h"

#define RECORDING_FORMAT 1
#define EVENTS_BEFORE_FAILURE 256u

/* Large parts are written less often. */
#define MAP_SECONDS 0.5
#define SIZES_SECONDS 10.0

static volatile sig_atomic_t interrupted;

struct recording {
    FILE *file;
    uint64_t start_ns; /* of the monotonic clock */
    double next_map, next_sizes;
    uint64_t next_landmark; /* the first landmark that is not written yet */
    unsigned long samples;
};

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

static double seconds_since(uint64_t start_ns) {
    return (double)(bfc_now_ns() - start_ns) / 1e9;
}

/* --- lines --- */

static struct json_writer begin_line(const struct recording *recording, const char *type,
                                     double seconds) {
    struct json_writer json = json_writer_init(recording->file);
    json.compact = true;
    json_object(&json, NULL);
    json_string(&json, "type", type);
    json_number(&json, "seconds", seconds);
    return json;
}

static void write_start(const struct recording *recording, const struct bfc_job *job) {
    struct json_writer json = begin_line(recording, "start", 0);
    json_unsigned(&json, "format", RECORDING_FORMAT);
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
    json_unsigned(json, "in_use", stats->in_use);
    json_unsigned(json, "requested", stats->requested);
    json_unsigned(json, "ready", stats->ready);
    json_unsigned(json, "pending", stats->pending);
    json_unsigned(json, "deferred", stats->deferred);
    json_unsigned(json, "reserved", stats->reserved);
    json_unsigned(json, "peak_in_use", stats->peak_in_use);
    json_unsigned(json, "peak_reserved", stats->peak_reserved);
    json_unsigned(json, "largest_free", stats->largest_free);
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

/* Writes the landmarks that are in no line yet. Returns whether one is a failed allocation. */
static bool put_new_landmarks(struct json_writer *json, struct recording *recording,
                              const struct bfc_job *job) {
    size_t first = 0;
    bool failed = false;
    while (first < job->landmark_count && job->landmarks[first].stamp <= recording->next_landmark)
        first++;
    for (size_t i = first; i < job->landmark_count; i++)
        failed |= bfc_event_kind_of(job->landmarks[i].what) == BFC_EVENT_OUT_OF_MEMORY;
    put_events(json, "landmarks", job->landmarks + first, job->landmark_count - first);
    if (first < job->landmark_count)
        recording->next_landmark = job->landmarks[job->landmark_count - 1].stamp;
    return failed;
}

static void write_events(const struct recording *recording, const struct bfc_job *job,
                         double seconds) {
    size_t count = job->event_count;
    size_t first = count > EVENTS_BEFORE_FAILURE ? count - EVENTS_BEFORE_FAILURE : 0;
    struct json_writer json = begin_line(recording, "events", seconds);
    put_events(&json, "events", job->events + first, count - first);
    json_object_end(&json);
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

static void write_sample(struct recording *recording, const struct bfc_job *job) {
    double seconds = seconds_since(recording->start_ns);
    struct json_writer json = begin_line(recording, "sample", seconds);
    json_array(&json, "pools");
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (job->pools[i].state == BFC_POOL_ACTIVE)
            put_sample(&json, job, i);
    json_array_end(&json);
    bool failed = put_new_landmarks(&json, recording, job);
    json_object_end(&json);
    recording->samples++;
    if (failed)
        write_events(recording, job, seconds);
    if (failed || seconds >= recording->next_map) {
        write_map(recording, job, seconds);
        recording->next_map = seconds + MAP_SECONDS;
    }
    if (seconds >= recording->next_sizes) {
        write_sizes(recording, job, seconds);
        recording->next_sizes = seconds + SIZES_SECONDS;
    }
}

static void write_end(const struct recording *recording, const struct bfc_job *job,
                      const char *reason) {
    double seconds = seconds_since(recording->start_ns);
    write_sizes(recording, job, seconds);
    struct json_writer json = begin_line(recording, "end", seconds);
    json_string(&json, "reason", reason);
    json_object_end(&json);
}

/* --- the command --- */

static void show_progress(const struct recording *recording, const struct bfc_job *job) {
    char in_use[TEXT_FIGURE];
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%.1f s, %lu samples, in use %s   ", seconds_since(recording->start_ns),
            recording->samples, bfc_bytes_text(job_totals(job).in_use, in_use, sizeof in_use));
    fflush(stderr);
}

/*
 * Runs until ^C, until the job ends, for the duration, or until the disk is full. Returns the
 * reason in a word; NULL: the segment was refused.
 */
static const char *sample_until_end(struct recording *recording, const struct request *request,
                                    int directory, const struct bfc_segment_name *name,
                                    struct bfc_job *job) {
    double interval = request->interval > 0 ? request->interval : 0.25;
    double duration = request->duration > 0 ? request->duration : INFINITY;
    struct timespec pause = {(time_t)interval, (long)(fmod(interval, 1) * 1e9)};
    static struct bfc_job next;
    char reason[512];
    for (;;) {
        write_sample(recording, job);
        show_progress(recording, job);
        if (fflush(recording->file) != 0)
            return NULL;
        if (job->state == BFC_JOB_ENDED)
            return "ended";
        if (seconds_since(recording->start_ns) >= duration)
            return "duration";
        if (interrupted || nanosleep(&pause, NULL) != 0)
            return "interrupted";
        enum bfc_read_result result = read_job(directory, name, &next, reason, sizeof reason);
        if (result != BFC_READ_OK)
            return "ended";
        *job = next;
    }
}

static int record(const struct request *request, int directory, const struct bfc_segment_name *name,
                  struct bfc_job *job) {
    struct recording recording = {.file = fopen(request->output, "we"), .start_ns = bfc_now_ns()};
    struct sigaction action = {.sa_handler = on_signal};
    if (!recording.file) {
        fprintf(stderr, "bfcstat: %s: %s\n", request->output, strerror(errno));
        return REFUSED;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    write_start(&recording, job);
    const char *reason = sample_until_end(&recording, request, directory, name, job);
    if (reason)
        write_end(&recording, job, reason);
    bool failed = !reason || ferror(recording.file);
    failed |= fclose(recording.file) != 0;
    if (isatty(STDERR_FILENO))
        fputc('\n', stderr);
    if (failed) {
        fprintf(stderr, "bfcstat: %s: %s\n", request->output, strerror(errno));
        return REFUSED;
    }
    printf("%lu samples of process %d in %s (%s)\n", recording.samples, name->pid, request->output,
           reason);
    return SHOWN;
}

int run_record(const struct request *request, int directory) {
    static struct bfc_job job;
    struct bfc_segment_name name;
    char reason[512];
    int status = find_target(directory, request->directory, request->target, &name);
    if (status != SHOWN)
        return status;
    if (read_job(directory, &name, &job, reason, sizeof reason) != BFC_READ_OK) {
        fprintf(stderr, "bfcstat: %s\n", reason);
        return REFUSED;
    }
    return record(request, directory, &name, &job);
}

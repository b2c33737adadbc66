/*
 * The parts of bfcstat: what it found, and the two ways to show it.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_H
#define BFC_TOOLS_BFCSTAT_H

#include <stdio.h>

#include "tools/segment_reader.h"

/* What one look at the directory gave. */
struct findings {
    struct bfc_job *jobs;
    size_t job_count;
    char (*refused)[512]; /* one line each: segment's name, colon, reason */
    size_t refused_count;
    struct bfc_segment_name *swept; /* removed: their processes are dead */
    size_t swept_count;
};

/* Exit statuses. */
enum { SHOWN = 0, REFUSED = 1, MISUSED = 2, ENDED = 3 };

/* The command line. */
struct request {
    enum { AS_TEXT, AS_JSON, AS_PROMETHEUS } format;
    const char *directory;     /* as given */
    const char *target;        /* PID or SEGMENT, or NULL */
    const char *output;        /* -o: record, report */
    uint64_t bytes;            /* trim: how much */
    double interval, duration; /* seconds: record, top */
};

/*
 * Has the job bring its map up to date (a bounded wait), and copies its segment; waits for one that
 * is being made. As bfc_segment_read.
 */
enum bfc_read_result read_job(int directory, const struct bfc_segment_name *name,
                              struct bfc_job *job, char *reason, size_t size);

/* Looks at all; false with errno set on failure. The findings are to be freed in either case. */
bool find_jobs(int directory, struct findings *findings);
void free_findings(struct findings *findings);

/* The segment that a person means by `target`: SHOWN, or another status, and why has been said. */
int find_target(int directory, const char *folder, const char *target,
                struct bfc_segment_name *name);

/* The commands; each returns the exit status. */
int run_trim(const struct request *request, int directory);
int run_record(const struct request *request, int directory);
int run_report(const struct request *request);
int run_top(const struct request *request, int directory);

/* Sums over a job's pools whose contexts have not ended. */
struct job_totals {
    uint64_t in_use, requested, cached, reserved, host_waits, waits, out_of_memory;
    uint64_t hits, misses;
};
struct job_totals job_totals(const struct bfc_job *job);

/* The words by which the counters' kinds are known, in texts and as JSON keys. */
const char *forward_reason_name(enum bfc_forward_reason reason);
const char *bypass_kind_name(enum bfc_bypass_kind kind);
const char *job_state_name(enum bfc_job_state state);

/* Why little of the job's memory is pooled and what to do, one sentence; NULL when all is well. */
const char *coverage_advice(const struct bfc_job *job);

/* `width`: the terminal's, 0 when there is none. */
void show_jobs_text(const struct findings *findings, size_t width, FILE *stream);
void show_job_text(const struct bfc_job *job, FILE *stream);

/* Histograms, map and last events of one job. */
void show_charts_text(const struct bfc_job *job, FILE *stream);
const char *event_name(enum bfc_event_kind kind);

/* Prometheus's text format, version 0.0.4; metrics: docs/bfcstat.md. */
void show_jobs_prometheus(const struct findings *findings, FILE *stream);

/* Keys: docs/bfcstat.md. */
void show_jobs_json(const struct findings *findings, FILE *stream);
void show_job_json(const struct bfc_job *job, FILE *stream);

#endif

/*
 * The parts of bfcstat: finding jobs, and the commands.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_H
#define BFC_TOOLS_BFCSTAT_H

#include "tools/bfcstat/view/view.h"

/* The exit statuses of bfcstat. */
enum { SHOWN = 0, REFUSED = 1, MISUSED = 2, ENDED = 3 };

/* The parsed command line. */
struct request {
    enum { AS_TEXT, AS_JSON, AS_PROMETHEUS } format;
    const char *directory;     /* the folder of segments, as the user gave it */
    const char *target;        /* PID or SEGMENT, or NULL */
    const char *output;        /* -o: file to write */
    const char *listen;        /* serve: ADDRESS:PORT */
    const char *slurm_job;     /* Slurm's JOB or JOB.STEP; NULL: all jobs */
    uint64_t bytes;            /* trim: bytes to give back */
    double interval, duration; /* seconds: record, top, snapshot */
    const char *beside;        /* report: another recording, or NULL */
    bool events;               /* record: writes all allocations and frees */
    double between;            /* who: seconds between two moments; 0: one moment */
    const char *before;        /* who: file of an earlier moment, or NULL */
    bool by_tag;               /* who: the first table sums up by tag, not by library */
    bool collapsed;            /* who: one line for each stack */
    size_t sites;              /* how many stacks are shown at most; 0: all */
    long device;               /* plan: number of the device in the job; -1: the only one */
};

/* Asks the job to refresh its map, waits for that within a bound, and copies the job's segment. If
 * the segment is still being initialized, waits for that too. Results are those of
 * bfc_segment_read. */
enum bfc_read_result read_job(int directory, const struct bfc_segment_name *name,
                              struct bfc_job *job, char *reason, size_t size);

/* Finds all jobs; false with errno set on failure. Free the findings in either case. */
bool find_jobs(int directory, struct findings *findings);
/* Finds jobs as find_jobs does, but without their maps and events, and within bounds on the jobs
 * and pools of each user and of all users (docs/watching.md). Jobs and pools beyond the bounds are
 * counted in findings->left_out and left_out_pools. */
bool find_figures(int directory, struct findings *findings);
/* Sets findings->gpus: the machine's devices, with what the jobs that were found have on each;
 * false: no memory. */
bool find_gpus(struct findings *findings);
/* Returns the device of a pool among findings->gpus; NULL: it is not there. */
const struct gpu *gpu_of(const struct findings *findings, const struct bfc_segment_pool *pool);
void free_findings(struct findings *findings);

/*
 * Finds the segment that `target` (PID or SEGMENT) names. Returns SHOWN, or another exit status
 * after a message on standard error.
 */
int find_target(int directory, const char *folder, const char *target,
                struct bfc_segment_name *name);

/* Whether the text is a PID or a segment's name. */
bool is_target(const char *text);

/* Writes one sample of the target with the events that its segment holds; returns the exit status.
 */
int record_once(const struct request *request, int directory, FILE *file);

/* The commands; each returns the exit status. */
int run_trim(const struct request *request, int directory);
int run_record(const struct request *request, int directory);
int run_report(const struct request *request, int directory);
int run_who(const struct request *request, int directory);
int run_plan(const struct request *request, int directory);
int run_snapshot(const struct request *request, int directory);
int run_top(const struct request *request, int directory);
int run_serve(const struct request *request, int directory);

#endif

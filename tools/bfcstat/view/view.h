/*
 * What bfcstat found out about jobs and devices, and the functions that show it as text, as JSON
 * and as Prometheus's metrics.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_VIEW_H
#define BFC_TOOLS_BFCSTAT_VIEW_H

#include <stdio.h>

#include "segment/kinds.h"
#include "tools/bfcstat/view/gpu.h"
#include "tools/job/reader.h"

/* Which user, batch job (Slurm), pod and container (Kubernetes) a job belongs to. A text is empty
 * if it is not known. */
struct job_identity {
    char comm[16]; /* the program's name, without its arguments */
    char user[64];
    char slurm_job[24], slurm_step[24];
    char pod[256], pod_namespace[64], container[256];
    char pod_uid[40], container_id[68];
};

/* Counters of what all jobs of a user have done on a device, jobs that have ended included. */
enum tally_count {
    TALLY_JOBS_ENDED,
    TALLY_ALLOCATIONS,
    TALLY_MISSES,
    TALLY_RETRIES,
    TALLY_OUT_OF_MEMORY,
    TALLY_INVALID_FREES,
    TALLY_COUNTS,
};

struct tally {
    char user[64];
    uint8_t uuid[16];
    char bus_id[24];
    uint64_t counts[TALLY_COUNTS];
};

/* A file with a shared-memory segment's name that could not be read. */
struct refusal {
    char line[512];     /* "NAME: why the file could not be read"; NAME is the file's name */
    bool of_permission; /* whether the file could not be read because it belongs to another user */
};

/* The result of reading all segments (the shared-memory files that jobs publish) of a folder
 * once. */
struct findings {
    struct bfc_job *jobs;
    size_t job_count;
    /* For each element of `jobs`, which user, batch job and container it belongs to; NULL: not
     * looked up. */
    struct job_identity *identities;
    struct gpu *gpus; /* the machine's devices; NULL: they were not looked for */
    size_t gpu_count;
    /* Counters that outlast the jobs, for each user and device. They are not freed with the
     * findings. NULL: there are none. */
    const struct tally *tallies;
    size_t tally_count;
    /* number of jobs that were not read, because a user, or all users together, have too many */
    size_t left_out;
    /* Number of pools that are not shown, although their jobs were read, because find_figures
     * bounds the number of pools. */
    size_t left_out_pools;
    /* Number of files that were not read because the user in their names is not their owner. */
    size_t impostors;
    struct refusal *refused;
    size_t refused_count;
    /* Segments that were removed because their processes are dead. */
    struct bfc_segment_name *swept;
    size_t swept_count;
};

/* Sums over those pools of a job whose contexts exist. Sizes are bytes of device memory; `spilled`
 * are bytes in use of host memory (BFC_SPILL), in `spilled_blocks` blocks. */
struct job_totals {
    uint64_t in_use, requested, cached, reserved, asleep, host_waits, waits, out_of_memory;
    uint64_t spilled, spilled_blocks;
    uint64_t hits, misses;
};
struct job_totals job_totals(const struct bfc_job *job);

/* Returns the name of a state of enum bfc_sleep_state; "other" for any other number. */
const char *job_sleep_name(uint64_t state);

/* Writes, for example, "asleep for 12.0 s, 3.20 GiB in memory": since when the job is asleep, and
 * how many bytes of the pool's contents are saved in which place. If `pool` is NULL, counts the
 * contents of all pools. Writes nothing if the job is not asleep. SLEEP_TEXT bytes suffice for
 * `text`. */
#define SLEEP_TEXT 160u
const char *job_sleep_text(const struct bfc_job *job, const struct bfc_segment_pool *pool,
                           char *text, size_t size);

/* Returns how many bytes the pool occupies on the device: those that it has reserved, less those
 * that are asleep (given back to the device until the job wakes). */
uint64_t pool_held(const struct bfc_segment_pool *pool);

/* job_waiter returns the thread of the job that waits for memory for this pool; if several do, the
 * one that began first; NULL: none. waited_ns returns how long it has waited. That is 0 if
 * bfcstat's clock is behind the job's, as it may be in another time namespace. */
const struct bfc_waiter *job_waiter(const struct bfc_job *job, unsigned pool);
uint64_t waited_ns(const struct bfc_waiter *waiter);

/* Writes "waits for 3.20 GiB for 12.0 s, position 2", or nothing if `waiter` is NULL. WAITER_TEXT
 * bytes suffice for `text`. */
#define WAITER_TEXT 128u
char *waiter_text(const struct bfc_waiter *waiter, char *text, size_t size);

/* Writes the job's command without the folder of its program, since there is little room in a
 * table. */
const char *job_command(const struct bfc_job *job, char *text, size_t size);

/* Returns the name of the job's user, or NULL if that is the user who runs bfcstat.
 * findings->identities must be set. */
const char *other_user(const struct findings *findings, const struct bfc_job *job);

const char *job_state_name(enum bfc_job_state state);

/* Returns advice in a sentence or two if little of the job's memory is pooled: why, and what to do;
 * NULL if enough is pooled. */
const char *coverage_advice(const struct bfc_job *job);

/* Show all jobs, or one job, as text. `width` is the width of the terminal in columns; 0: there
 * is no terminal. */
void show_jobs_text(const struct findings *findings, size_t width, FILE *stream);
void show_job_text(const struct bfc_job *job, FILE *stream);

/* Shows charts of one job: histograms, the map of its regions, and its last events other than
 * allocations and frees. */
void show_charts_text(const struct bfc_job *job, FILE *stream);

enum metrics_format { METRICS_PROMETHEUS, METRICS_OPEN };

/* Writes the metrics that docs/bfcstat.md lists, in Prometheus's text format, version 0.0.4, or as
 * OpenMetrics 1.0. findings->identities must be set. False: no memory. */
bool show_jobs_metrics(const struct findings *findings, enum metrics_format format, FILE *stream);

/* Write all jobs, or one job, as JSON. docs/bfcstat.md describes the keys. */
void show_jobs_json(const struct findings *findings, FILE *stream);
void show_job_json(const struct bfc_job *job, FILE *stream);

#endif

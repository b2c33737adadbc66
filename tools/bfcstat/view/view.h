/*
 * The ways to show what bfcstat found: text, JSON, Prometheus.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_VIEW_H
#define BFC_TOOLS_BFCSTAT_VIEW_H

#include <stdio.h>

#include "segment/kinds.h"
#include "tools/bfcstat/view/gpu.h"
#include "tools/job/reader.h"

/* Who a job is to the machine around it. A text is empty if it is not known. */
struct job_identity {
    char comm[16]; /* the program's name, without its arguments */
    char user[64];
    char slurm_job[24], slurm_step[24];
    char pod[256], pod_namespace[64], container[256];
    char pod_uid[40], container_id[68];
};

/* What the jobs of a user have done on a device, those that ended included. */
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

/* A segment that could not be read. */
struct refusal {
    char line[512];     /* the segment's name, colon, reason */
    bool of_permission; /* whether the segment is another user's */
};

/* The result of reading all segments of a directory once. */
struct findings {
    struct bfc_job *jobs;
    size_t job_count;
    /* the identities of `jobs`, one for each; NULL: they were not looked up */
    struct job_identity *identities;
    struct gpu *gpus; /* the machine's devices; NULL: not looked for */
    size_t gpu_count;
    /* counts that outlast the jobs, and are not freed with the findings; NULL: there are none */
    const struct tally *tallies;
    size_t tally_count;
    size_t left_out; /* jobs that were not read, because there were more than the bound allows */
    /* pools of the jobs that were read, which are not shown because there were more than the bound
     * allows */
    size_t left_out_pools;
    size_t impostors; /* files whose names are of another user's segments, so that they were not
                         read */
    struct refusal *refused;
    size_t refused_count;
    /* segments that were removed because their processes are dead */
    struct bfc_segment_name *swept;
    size_t swept_count;
};

/* Sums over a job's pools whose contexts have not ended. Sizes are bytes of device memory, except
 * `spilled`: bytes in use of host memory (BFC_SPILL), in `spilled_blocks` blocks. */
struct job_totals {
    uint64_t in_use, requested, cached, reserved, asleep, host_waits, waits, out_of_memory;
    uint64_t spilled, spilled_blocks;
    uint64_t hits, misses;
};
struct job_totals job_totals(const struct bfc_job *job);

/* The name of a state of enum bfc_sleep_state. */
const char *job_sleep_name(uint64_t state);

/* Writes "asleep for 12.0 s, 3.20 GiB in memory", with the bytes of the pool, or of all pools if
 * `pool` is NULL; nothing if the job is not asleep. */
#define SLEEP_TEXT 160u
const char *job_sleep_text(const struct bfc_job *job, const struct bfc_segment_pool *pool,
                           char *text, size_t size);

/* Bytes that the pool has on the device: reserved and not asleep. */
uint64_t pool_held(const struct bfc_segment_pool *pool);

/* Returns the thread that waits for memory for this pool, the one that began first if several wait;
 * NULL: none. waited_ns is the time since it began; 0 if bfcstat's clock is behind the job's, as it
 * may be in another time namespace. */
const struct bfc_waiter *job_waiter(const struct bfc_job *job, unsigned pool);
uint64_t waited_ns(const struct bfc_waiter *waiter);

/* Writes "waits for 3.20 GiB for 12.0 s, position 2", or nothing if `waiter` is NULL. */
#define WAITER_TEXT 128u
char *waiter_text(const struct bfc_waiter *waiter, char *text, size_t size);

/* Writes the job's command without the folder of its program, which would fill a column. */
const char *job_command(const struct bfc_job *job, char *text, size_t size);

/* Returns the job's user if that is not the one who runs bfcstat; otherwise NULL. The findings need
 * identities. */
const char *other_user(const struct findings *findings, const struct bfc_job *job);

const char *job_state_name(enum bfc_job_state state);

/* Returns one sentence that says why little of the job's memory is pooled and what to do; NULL if
 * enough is pooled. */
const char *coverage_advice(const struct bfc_job *job);

/* Show all jobs, or one job, as text. `width` is the width of the terminal in columns; 0: there
 * is no terminal. */
void show_jobs_text(const struct findings *findings, size_t width, FILE *stream);
void show_job_text(const struct bfc_job *job, FILE *stream);

/* Shows histograms, the map and the last events of one job. */
void show_charts_text(const struct bfc_job *job, FILE *stream);

/* Writes the metrics of docs/bfcstat.md in Prometheus's text format, version 0.0.4, or as
 * OpenMetrics 1.0. The findings need identities. False: no memory. */
enum metrics_format { METRICS_PROMETHEUS, METRICS_OPEN };
bool show_jobs_metrics(const struct findings *findings, enum metrics_format format, FILE *stream);

/* Write all jobs, or one job, as JSON. docs/bfcstat.md describes the keys. */
void show_jobs_json(const struct findings *findings, FILE *stream);
void show_job_json(const struct bfc_job *job, FILE *stream);

#endif

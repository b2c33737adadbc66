/*
 * What the source files of bfcstat share: the parsed command line, the search for jobs, and the
 * functions of the commands.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_BFCSTAT_H
#define BFC_TOOLS_BFCSTAT_H

#include "tools/bfcstat/view/view.h"

/* The exit statuses of bfcstat; its help says when each occurs. */
enum { SHOWN = 0, REFUSED = 1, MISUSED = 2, ENDED = 3 };

/* The parsed command line. A comment that begins with a command and a colon, such as "trim:", says
 * that only this command uses the field. */
struct request {
    enum { AS_TEXT, AS_JSON, AS_PROMETHEUS } format;
    /* the folder with the jobs' shared-memory segments, as the user gave it */
    const char *directory;
    /* what the command is about: a PID, the name of a shared-memory segment or of a file; NULL: not
     * given */
    const char *target;
    const char *output;        /* -o: file to write; NULL: not given */
    const char *listen;        /* serve: ADDRESS:PORT at which to accept connections */
    const char *slurm_job;     /* Slurm's JOB or JOB.STEP; NULL: all jobs */
    uint64_t bytes;            /* trim: bytes that the job should give back to the device */
    double interval, duration; /* --interval and --duration in seconds; 0: not given */
    const char *beside; /* report: file of a second recording to show on the same page, or NULL */
    bool events;        /* record: whether to write all allocations and frees */
    /* who: seconds between two answers of the job that are compared; 0: compare none */
    double between;
    const char *before; /* who: file with an earlier answer to compare with, or NULL */
    bool by_tag;        /* who: whether the first table sums up by tag, not by library */
    bool collapsed;     /* who: whether to print one line for each call stack, for flame graphs */
    size_t sites;       /* who: how many call stacks are shown at most; 0: all */
    long device;        /* plan: number of the device whose plan is saved; -1: not given */
};

/* Asks the job to bring the map of its regions up to date, waits for that for a bounded time, and
 * copies the job's shared-memory segment. If the job is still initializing its segment, waits for
 * that too. Results are those of bfc_segment_read. */
enum bfc_read_result read_job(int directory, const struct bfc_segment_name *name,
                              struct bfc_job *job, char *reason, size_t size);

/* Stores in `findings` all jobs that have a shared-memory segment in the folder `directory`. False:
 * failure; errno says why. free_findings must be called in either case. */
bool find_jobs(int directory, struct findings *findings);
/* Finds jobs as find_jobs does, but without the maps of their regions and their events. How many
 * jobs and pools are read of each user, and of all users, is bounded (docs/watching.md); those
 * beyond the bounds are only counted, in findings->left_out and left_out_pools. */
bool find_figures(int directory, struct findings *findings);
/* Sets findings->gpus to the machine's devices, and adds up how much of each the jobs in `findings`
 * use; false: no memory. */
bool find_gpus(struct findings *findings);
/* Returns the element of findings->gpus for the device on which the pool allocates; NULL: the
 * device is not listed. */
const struct gpu *gpu_of(const struct findings *findings, const struct bfc_segment_pool *pool);
void free_findings(struct findings *findings);

/*
 * Finds the shared-memory segment that `target`, a PID or a segment's name, means. `folder` is the
 * name of `directory` for messages. Returns SHOWN, or another exit status after a message on
 * standard error.
 */
int find_target(int directory, const char *folder, const char *target,
                struct bfc_segment_name *name);

/* Whether the text is a PID or a shared-memory segment's name. */
bool is_target(const char *text);

/* Writes a recording with one sample of the job that the request names, and with the events that
 * its shared-memory segment holds now. Returns the exit status. */
int record_once(const struct request *request, int directory, FILE *file);

/* The functions of the commands, named after them; each returns the exit status of bfcstat. */
int run_trim(const struct request *request, int directory);
int run_sleep(const struct request *request, int directory);
int run_wake(const struct request *request, int directory);
int run_record(const struct request *request, int directory);
int run_report(const struct request *request, int directory);
int run_who(const struct request *request, int directory);
int run_plan(const struct request *request, int directory);
int run_snapshot(const struct request *request, int directory);
int run_top(const struct request *request, int directory);
int run_serve(const struct request *request, int directory);

#endif

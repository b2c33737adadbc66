#include "tools/plan/cli/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "planner/common/watch.h"
#include "tools/plan/common/whole_file.h"

#define SHOW_NANOSECONDS 250000000
#define QUIET_SECONDS 0.5 /* a run of bfcplan that is shorter than this shows no progress */
/* after this time in a stage its remaining time is estimated and shown */
#define ESTIMATE_SECONDS 0.2
#define WIPE "\r\033[K"

bool progress_interrupted;

static const struct progress_way *way;
static enum stage stage; /* atomic: the stage of its work in which bfcplan is */
static bool have_plan;   /* atomic: whether there is a plan to write after ^C */
/* atomic: whether the terminal shows a line of progress, which must be wiped before other text */
static bool shown;
/* The lock guards `showing`, `begun`, `limit` and `packing`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool showing;
static double begun; /* when the current stage began, in seconds */
static double limit; /* how long the current stage may take, in seconds; 0: not limited */
static struct solve_progress packing = {.peak = UINT64_MAX};
static pthread_cond_t over;
static pthread_t thread;

static const char *const names[STAGES] = {
    "reading", "preparing", "packing", "checking", "writing", "looking for a period", "ordering"};

/* Writes the text to standard error, after wiping the line that shows the progress if there is one.
 * A signal handler calls this, so only async-signal-safe functions may be called here. */
static void write_status(const char *text) {
    if (bfc_load_relaxed(&shown))
        (void)!write(STDERR_FILENO, WIPE, sizeof WIPE - 1);
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void on_interrupt(int number) {
    const bool again = bfc_exchange_acq_rel(&progress_interrupted, true);
    if (again)
        write_status(
            "bfcplan: interrupted again: ends at once; what was not written yet is left as it "
            "was\n");
    else if (bfc_load_seq_cst(&have_plan))
        write_status(
            "bfcplan: interrupted: the best plan so far is checked and written; ^C again ends at "
            "once, without it\n");
    else if (way->keeps_plan)
        write_status("bfcplan: interrupted before there was a plan: nothing was written\n");
    else
        write_status("bfcplan: interrupted: nothing was written\n");
    if (!again && bfc_load_seq_cst(&have_plan))
        return;
    file_drop_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

static void show_figures(FILE *out) {
    fprintf(out, "; lower bound %s", BFC_BYTES(packing.bound));
    if (packing.peak != UINT64_MAX)
        fprintf(out, ", peak %s (%.4f)", BFC_BYTES(packing.peak),
                packing.bound == 0 ? 1 : (double)packing.peak / (double)packing.bound);
}

static unsigned number_of(enum stage one) {
    unsigned i = 0;
    while (i + 1 < way->count && way->stages[i] != one)
        i++;
    return i + 1;
}

/* Returns which share of the current stage is done, from 0 to 1. `spent` is how long the stage has
 * taken so far, in seconds. */
static double share_of(enum stage one, double spent) {
    if (one == STAGE_PACK)
        return packing.share;
    return limit <= 0 ? watch_share() : spent < limit ? spent / limit : 1;
}

/* Writes the line that shows how far the current stage is. The caller must hold the lock. */
static void show_progress(void) {
    const enum stage now = bfc_load_relaxed(&stage);
    const double spent = bfc_now_seconds() - begun;
    const double share = share_of(now, spent);
    const bool planless = now == STAGE_PACK && packing.peak == UINT64_MAX;
    char line[256];
    FILE *out = fmemopen(line, sizeof line, "w");
    if (!out)
        return;
    fprintf(out, WIPE "step %u of %u, %s: %.0f %%%s", number_of(now), way->count, names[now],
            share * 100, planless ? " of a first plan" : "");
    if (share > 0 && spent >= ESTIMATE_SECONDS)
        fprintf(out, ", %.0f s left of it", spent * (1 - share) / share);
    if (now == STAGE_PACK && packing.bound > 0)
        show_figures(out);
    const long length = ftell(out);
    fclose(out);
    bfc_store_relaxed(&shown, true);
    (void)!write(STDERR_FILENO, line, length > 0 ? (size_t)length : 0);
}

static void *run_display(void *none) {
    const double started = bfc_now_seconds();
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&lock);
    while (showing) {
        until.tv_nsec += SHOW_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&over, &lock, &until);
        if (showing && bfc_now_seconds() - started >= QUIET_SECONDS)
            show_progress();
    }
    pthread_mutex_unlock(&lock);
    return none;
}

static void catch_interrupts(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void progress_start(const struct progress_way *chosen) {
    pthread_condattr_t monotonic;
    way = chosen;
    stage = way->stages[0];
    catch_interrupts();
    begun = bfc_now_seconds();
    if (!isatty(STDERR_FILENO))
        return;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    /* The new thread reads `showing` only under the lock, which is held until `showing` is set. */
    pthread_mutex_lock(&lock);
    showing = pthread_create(&thread, NULL, run_display, NULL) == 0;
    pthread_mutex_unlock(&lock);
}

void progress_stop(void) {
    pthread_mutex_lock(&lock);
    const bool was = showing;
    showing = false;
    if (was)
        pthread_cond_signal(&over);
    pthread_mutex_unlock(&lock);
    if (!was)
        return;
    pthread_join(thread, NULL);
    if (bfc_exchange_relaxed(&shown, false))
        fputs(WIPE, stderr);
}

static void begin_stage(enum stage next, uint64_t steps, double seconds) {
    pthread_mutex_lock(&lock);
    bfc_store_relaxed(&stage, next);
    begun = bfc_now_seconds();
    limit = seconds;
    watch_begin(steps);
    pthread_mutex_unlock(&lock);
}

void progress_stage(enum stage next, uint64_t steps) {
    begin_stage(next, steps, 0);
}

void progress_timed(enum stage next, double seconds) {
    begin_stage(next, 0, seconds);
}

void progress_packing(const struct solve_progress *progress) {
    pthread_mutex_lock(&lock);
    packing = *progress;
    pthread_mutex_unlock(&lock);
    if (progress->peak != UINT64_MAX && way->keeps_plan)
        bfc_store_seq_cst(&have_plan, true);
}

/*
 * bfcplan solve: reads lifetimes, finds an offset for each so that they need little memory, checks
 * and writes this plan, and prints how near it is to the lower bound.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "planner/common/number.h"
#include "planner/model/validate.h"
#include "planner/pack/solve.h"
#include "tools/plan/cli/arguments.h"
#include "tools/plan/cli/command.h"
#include "tools/plan/cli/progress.h"
#include "tools/plan/cli/source.h"
#include "tools/plan/common/whole_file.h"
#include "tools/plan/io/csv.h"
#include "tools/plan/io/plan_file.h"

#define MOST_THREADS 1024
#define MOST_ALIGN ((uint64_t)1 << 40)
/* How many seconds of the time limit are set aside, for each lifetime, for checking and writing the
 * plan, because the limit is for the whole run. */
#define SECONDS_PER_ROW 4e-6

struct settings {
    const char *file;
    const char *plan;
    const char *offsets;
    uint64_t capacity;
    uint64_t align;
    uint64_t threads;
    uint64_t seed;
    uint64_t gap;
    double seconds;
    bool json;
    double started;
};

struct job {
    struct settings settings;
    struct lifetimes lifetimes;
    struct source_about about;
    struct problem problem;
    uint64_t *offsets;
    uint64_t *peaks;
    struct solve_result result;
    struct plan_error error;
};

static double ratio_of(uint64_t peak, uint64_t bound) {
    return bound == 0 ? 1 : (double)peak / (double)bound;
}

static bool parse_settings(int argc, char **argv, struct settings *s) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *s = (struct settings){.capacity = UINT64_MAX,
                           .align = 512,
                           .threads = processors > 0 ? (uint64_t)processors : 1,
                           .seed = 1,
                           .seconds = -1};
    const struct option options[] = {
        {"output", 'o', OPTION_TEXT, &s->plan, 0, 0},
        {"offsets", 0, OPTION_TEXT, &s->offsets, 0, 0},
        {"capacity", 0, OPTION_BYTES, &s->capacity, 0, PLAN_MOST_BYTES},
        {"align", 0, OPTION_BYTES, &s->align, 1, MOST_ALIGN},
        {"time-limit", 0, OPTION_SECONDS, &s->seconds, 0, 0},
        {"threads", 0, OPTION_NUMBER, &s->threads, 1, MOST_THREADS},
        {"seed", 0, OPTION_NUMBER, &s->seed, 0, UINT64_MAX},
        {"stream-gap", 0, OPTION_NUMBER, &s->gap, 0, UINT64_MAX},
        {"json", 0, OPTION_FLAG, &s->json, 0, 0}};
    if (!arguments_parse(argc, argv, options, sizeof options / sizeof *options, &s->file, 1,
                         "one FILE"))
        return false;
    if (s->plan || s->offsets)
        return true;
    command_misuse("solve needs -o PLAN, or --offsets OUT.csv");
    return false;
}

static bool has_gap(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--stream-gap", 12) == 0)
            return true;
    return false;
}

static bool prepare_job(struct job *job, bool trace_streams) {
    const struct settings *s = &job->settings;
    if (!source_read(&job->lifetimes, s->file, trace_streams, &job->about, &job->error))
        return false;
    if (job->about.from_trace && job->lifetimes.count == 0)
        return plan_fail(&job->error, "%s: no allocation is in it%s: there is nothing to plan",
                         s->file, job->about.cut_off ? ", since its tail is missing" : "");
    progress_stage(STAGE_PREPARE, PROBLEM_STEPS * (uint64_t)job->lifetimes.count);
    if (!problem_build(&job->problem, &job->lifetimes, s->align, s->gap, &job->error))
        return false;
    const size_t rows = (size_t)job->lifetimes.count + 1;
    job->offsets = calloc(rows, sizeof *job->offsets);
    job->peaks = calloc(job->problem.count + (size_t)1, sizeof *job->peaks);
    if (!job->offsets || !job->peaks)
        return plan_fail_memory(&job->error);
    return !job->lifetimes.has_pin || validate_pins(&job->lifetimes, s->align, s->gap, &job->error);
}

static bool pack_job(struct job *job) {
    const struct settings *s = &job->settings;
    struct solve_options options = {.seconds = s->seconds,
                                    .capacity = s->capacity,
                                    .threads = (unsigned)s->threads,
                                    .seed = s->seed,
                                    .interrupted = &progress_interrupted,
                                    .progress = progress_packing};
    if (options.seconds >= 0) {
        const double used = bfc_now_seconds() - s->started + SECONDS_PER_ROW * job->lifetimes.count;
        options.seconds = options.seconds > used ? options.seconds - used : 0;
    }
    progress_stage(STAGE_PACK, 0);
    return solve(&job->problem, &options, job->offsets, &job->result, &job->error);
}

static uint64_t sum_of(const uint64_t *peaks, uint32_t count) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += peaks[i];
    return sum;
}

/* Checks the plan, and then writes it to the files that -o and --offsets name. */
static bool write_results(struct job *job) {
    const struct settings *s = &job->settings;
    progress_stage(STAGE_CHECK, VALIDATE_STEPS * (uint64_t)job->lifetimes.count);
    if (!validate(&job->lifetimes, job->offsets, s->align, s->gap, job->peaks, &job->error))
        return false;
    job->result.peak = sum_of(job->peaks, job->problem.count);
    uint64_t *bounds = malloc((job->problem.count + (size_t)1) * sizeof *bounds);
    if (!bounds)
        return plan_fail_memory(&job->error);
    for (uint32_t a = 0; a < job->problem.count; a++)
        bounds[a] = job->problem.arenas[a].bound;
    const struct plan_content content = {.lifetimes = &job->lifetimes,
                                         .offsets = job->offsets,
                                         .bounds = bounds,
                                         .peaks = job->peaks,
                                         .align = s->align,
                                         .gap = s->gap};
    progress_stage(STAGE_WRITE, 0);
    const bool good =
        (!s->plan || plan_write(&content, s->plan, &job->error)) &&
        (!s->offsets || csv_write(&job->lifetimes, job->offsets, s->offsets, &job->error));
    free(bounds);
    return good;
}

static void print_spaces(const struct job *job) {
    if (job->problem.count < 2)
        return;
    fputs(",\"spaces\":[", stdout);
    for (uint32_t a = 0; a < job->problem.count; a++)
        printf("%s{\"lower_bound\":%" PRIu64 ",\"peak\":%" PRIu64 "}", a > 0 ? "," : "",
               job->problem.arenas[a].bound, job->peaks[a]);
    fputs("]", stdout);
}

static void print_json(const struct job *job, bool within) {
    const struct solve_result *r = &job->result;
    printf("{\"buffers\":%u,\"lower_bound\":%" PRIu64 ",\"peak\":%" PRIu64
           ",\"ratio\":%.6f,\"seconds\":%.3f,\"align\":%" PRIu64 ",\"optimal\":%s",
           job->lifetimes.visible, r->bound, r->peak, ratio_of(r->peak, r->bound),
           bfc_now_seconds() - job->settings.started, job->settings.align,
           r->optimal ? "true" : "false");
    if (job->settings.capacity != UINT64_MAX)
        printf(",\"capacity\":%" PRIu64 ",\"within_capacity\":%s", job->settings.capacity,
               within ? "true" : "false");
    if (job->about.from_trace)
        printf(",\"prefix\":%u,\"period\":%u", job->lifetimes.prefix, job->lifetimes.period);
    print_spaces(job);
    printf(",\"interrupted\":%s}\n", bfc_load_seq_cst(&progress_interrupted) ? "true" : "false");
}

static void print_text(const struct job *job) {
    const struct solve_result *r = &job->result;
    if (job->about.cut_off)
        fprintf(stderr, "bfcplan: %s: the tail is missing; what is there is planned\n",
                job->settings.file);
    if (job->about.from_trace)
        printf("prefix       %u allocation%s\nperiod       %u allocation%s\n",
               job->lifetimes.prefix, bfc_plural(job->lifetimes.prefix), job->lifetimes.period,
               bfc_plural(job->lifetimes.period));
    printf("buffers      %u\nlower bound  %s (%" PRIu64 " bytes)\npeak         %s (%" PRIu64
           " bytes)%s\n",
           job->lifetimes.visible, BFC_BYTES(r->bound), r->bound, BFC_BYTES(r->peak), r->peak,
           r->optimal ? ", the least possible" : "");
    printf("ratio        %.6f\ntime         %.3f s%s\n", ratio_of(r->peak, r->bound),
           bfc_now_seconds() - job->settings.started,
           bfc_load_seq_cst(&progress_interrupted) ? ", interrupted" : "");
}

static int finish_job(struct job *job) {
    const uint64_t capacity = job->settings.capacity;
    progress_stop();
    const bool within = job->result.peak <= capacity;
    if (job->settings.json)
        print_json(job, within);
    else
        print_text(job);
    if (fflush(stdout) != 0)
        return command_fail(&(struct plan_error){"standard output: cannot be written"});
    if (within)
        return EXIT_GOOD;
    fprintf(stderr,
            "bfcplan: %s: the best plan found needs %s (%" PRIu64
            " bytes), above the capacity of %s (%" PRIu64 "); it was written all the same\n",
            job->settings.file, BFC_BYTES(job->result.peak), job->result.peak, BFC_BYTES(capacity),
            capacity);
    return EXIT_OVER_CAPACITY;
}

static int fail_job(const struct job *job) {
    progress_stop();
    return command_fail(&job->error);
}

static bool check_outputs(struct job *job) {
    const struct settings *s = &job->settings;
    return (!s->plan || file_check_output(s->plan, &job->error)) &&
           (!s->offsets || file_check_output(s->offsets, &job->error));
}

static int run_job(struct job *job, bool trace_streams) {
    if (!check_outputs(job) || !prepare_job(job, trace_streams))
        return fail_job(job);
    const uint64_t bound = problem_bound(&job->problem);
    if (bound > job->settings.capacity) {
        progress_stop();
        fprintf(stderr,
                "bfcplan: %s: %s (%" PRIu64
                " bytes) are alive at one time, above the capacity of %s (%" PRIu64
                "); nothing was written\n",
                job->settings.file, BFC_BYTES(bound), bound, BFC_BYTES(job->settings.capacity),
                job->settings.capacity);
        return EXIT_OVER_CAPACITY;
    }
    if (!pack_job(job) || !write_results(job))
        return fail_job(job);
    return finish_job(job);
}

static const enum stage stages[] = {STAGE_READ, STAGE_PREPARE, STAGE_PACK, STAGE_CHECK,
                                    STAGE_WRITE};
static const struct progress_way way = {stages, sizeof stages / sizeof *stages, true};

int command_solve(int argc, char **argv) {
    struct job job = {0};
    const double started = bfc_now_seconds();
    if (!parse_settings(argc, argv, &job.settings))
        return EXIT_USAGE;
    job.settings.started = started;
    progress_start(&way);
    const int status = run_job(&job, has_gap(argc, argv));
    problem_free(&job.problem);
    lifetimes_free(&job.lifetimes);
    free(job.result.peaks);
    free(job.offsets);
    free(job.peaks);
    return status;
}

/*
 * bfcstat: shows the jobs that run with bfcpreload, or one of them in full; asks a job to give
 * memory back; shows which call stacks hold a job's memory; saves the plan that a job follows;
 * records a job over time; makes a web page of a recording, or a memory snapshot for PyTorch's
 * viewers; serves metrics.
 *
 * bfcstat reads the shared-memory files (segments) that the jobs publish. It writes nothing into
 * them but requests, each in a word of its own, and removes the segments that dead processes of
 * this user left behind. Exit status: 0 shown, 1 no such job or its segment was refused, 2 wrong
 * usage, 3 the job has ended (its last state was shown).
 */
#include "tools/bfcstat/bfcstat.h"

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/shared_folder.h"
#include "segment/left_over.h"
#include "tools/bfcstat/identity.h"
#include "tools/text/print_text.h"

static const char usage[] =
    "usage: bfcstat [--json | --prometheus] [--slurm-job=JOB[.STEP]] [--directory=FOLDER]\n"
    "               [PID | SEGMENT]\n"
    "       bfcstat top [--interval=SECONDS]\n"
    "       bfcstat trim [--bytes=SIZE] PID\n"
    "       bfcstat sleep|wake PID\n"
    "       bfcstat who [--diff=SECONDS|FILE] [--by=library|tag]\n"
    "                   [--json | --collapsed | --sites=COUNT] [-o FILE] PID|FILE\n"
    "       bfcstat plan -o FILE [--device=NUMBER] PID\n"
    "       bfcstat record -o FILE [--interval=SECONDS] [--duration=SECONDS] [--events] PID\n"
    "       bfcstat snapshot -o OUT.pickle|OUT.json [--duration=SECONDS] PID\n"
    "       bfcstat report FILE|PID [--beside=FILE] -o PAGE.html\n"
    "       bfcstat serve [--listen=ADDRESS:PORT]\n"
    "\n"
    "Without a PID it prints a table of the jobs that run with bfcpreload, a row for each\n"
    "device that they use; with one, that job's devices, memory, counters, coverage and\n"
    "configuration.\n"
    "  top        all jobs live\n"
    "  trim       has a job give cached memory back\n"
    "  sleep      has an idle job give all its memory back, until it needs it (docs/sleep.md);\n"
    "  wake       has it take the memory again now\n"
    "  who        by library and by call stack, who holds its memory (docs/who.md)\n"
    "  plan       takes out the plan that it follows (BFC_PLAN=auto), for the next run to begin\n"
    "             with (docs/plan.md)\n"
    "  record     samples of it to a file, until it ends or ^C\n"
    "  snapshot   its blocks and last calls with call stacks: a memory snapshot of PyTorch's,\n"
    "             which its viewers read, or counters for Perfetto\n"
    "  report     a web page of a recording, or of a job as it is now with its last 4,096\n"
    "             events; with -o - to standard output\n"
    "  serve      answers Prometheus's requests for /metrics over HTTP\n"
    "\n"
    "  --json              print JSON instead (keys: docs/bfcstat.md)\n"
    "  --prometheus        print all jobs in Prometheus's text format\n"
    "  --slurm-job=JOB[.STEP]\n"
    "                      only what runs in that job of Slurm's\n"
    "  --bytes=SIZE        how much to request, with K, M, G, T (default: all that is cached)\n"
    "  --diff=SECONDS      what changes in that time, with the rate\n"
    "  --diff=FILE         what has changed since a moment that who -o FILE saved\n"
    "  --by=library|tag    what the first table of who sums up by (default: library)\n"
    "  --collapsed         a line a stack, for flame graphs\n"
    "  --sites=COUNT       stacks to show (default: 20; 0: all)\n"
    "  --device=NUMBER     whose plan, where a job has several\n"
    "  --interval=SECONDS  between two samples (default: top 1, record 0.25)\n"
    "  --duration=SECONDS  length of a recording (default: as long as the job runs); snapshot:\n"
    "                      take in the calls of that time, at most the last 1,000,000 (default:\n"
    "                      the last 4,096)\n"
    "  --events            record: every allocation and free as well, not only those before an\n"
    "                      out of memory (some 50 bytes each)\n"
    "  --beside=FILE       report: a second recording, on the same page and scales\n"
    "  --listen=ADDRESS:PORT\n"
    "                      where serve listens (default 127.0.0.1:9420)\n"
    "  --directory=FOLDER  where the segments are (default " BFC_SHARED_FOLDER ");\n"
    "                      /proc/PID/root" BFC_SHARED_FOLDER " looks into a container\n"
    "  --help, --version\n"
    "\n"
    "Segments that dead processes of this user left behind are removed.\n"
    "docs/glossary.md defines the terms (ready, pending, deferred, region, ...); docs/ is\n"
    "installed in share/doc/bfcpreload.\n"
    "Exit status: 0 shown, 1 no such job, or jobs that could not be read (other users') and no "
    "others,\n              2 wrong usage, 3 the job has ended.\n";

/* How many shared-memory segments bfcstat lists by name at most: of those that it removed (if there
 * are more, only their number is shown), and of those that it could not read (the rest are
 * counted). Any user can make many such files. */
#define SWEPT_SHOWN 4
#define REFUSED_SHOWN 16

static void report_refused(const struct findings *findings) {
    size_t of_permission = 0, others = 0;
    for (size_t i = 0; i < findings->refused_count; i++) {
        const struct refusal *refusal = &findings->refused[i];
        if (refusal->of_permission)
            of_permission++;
        else if (others++ < REFUSED_SHOWN)
            fprintf(stderr, "bfcstat: %s\n", refusal->line);
    }
    if (others > REFUSED_SHOWN)
        fprintf(stderr, "bfcstat: %zu more could not be read (--json lists all of them)\n",
                others - REFUSED_SHOWN);
    if (of_permission)
        fprintf(stderr, "bfcstat: other users' jobs that cannot be read: %zu (docs/watching.md)\n",
                of_permission);
}

static void report_odd_segments(const struct findings *findings) {
    report_refused(findings);
    if (findings->swept_count > SWEPT_SHOWN)
        fprintf(stderr, "bfcstat: %zu segments removed: their processes are dead\n",
                findings->swept_count);
    for (size_t i = 0; i < findings->swept_count && findings->swept_count <= SWEPT_SHOWN; i++)
        fprintf(stderr, "bfcstat: %s: removed: process %d is dead\n", findings->swept[i].text,
                findings->swept[i].pid);
}

/* Looks up which user, batch job and container each job belongs to. If request->slurm_job is set,
 * keeps only the jobs that belong to that job of Slurm's. False: no memory. */
static bool find_identities(const struct request *request, struct findings *findings) {
    struct identities identities = {0};
    bool good = identify_jobs(&identities, KUBELET_LOGS, findings);
    if (good && request->slurm_job)
        keep_slurm_job(request->slurm_job, findings);
    free_identities(&identities);
    return good;
}

static bool show_jobs(const struct request *request, const struct findings *findings) {
    if (request->format == AS_PROMETHEUS)
        return show_jobs_metrics(findings, METRICS_PROMETHEUS, stdout);
    if (request->format == AS_JSON)
        show_jobs_json(findings, stdout);
    else
        show_jobs_text(findings, text_width(stdout, 0), stdout);
    return true;
}

static int list_jobs(const struct request *request, int directory) {
    struct findings findings = {0};
    bfc_left_over_tables_sweep(directory);
    if (!find_jobs(directory, &findings)) {
        fprintf(stderr, "bfcstat: %s: %s\n", request->directory, strerror(errno));
        free_findings(&findings);
        return REFUSED;
    }
    bool shown = find_identities(request, &findings) &&
                 (request->format != AS_PROMETHEUS || find_gpus(&findings)) &&
                 show_jobs(request, &findings);
    if (!shown)
        fputs("bfcstat: no memory\n", stderr);
    report_odd_segments(&findings);
    bool none = findings.job_count == 0 && (findings.refused_count > 0 || request->slurm_job);
    free_findings(&findings);
    return shown && !none ? SHOWN : REFUSED;
}

static int show_segment(const struct request *request, int directory,
                        const struct bfc_segment_name *name) {
    static struct bfc_job job;
    char reason[512];
    enum bfc_read_result result = read_job(directory, name, &job, reason, sizeof reason);
    bool swept = bfc_segment_sweep(directory, name, result == BFC_READ_OK ? &job : NULL);
    if (result == BFC_READ_OK && request->format == AS_JSON)
        show_job_json(&job, stdout);
    else if (result == BFC_READ_OK)
        show_job_text(&job, stdout);
    else
        fprintf(stderr, "bfcstat: %s\n", reason);
    if (swept)
        fprintf(stderr, "bfcstat: %s: removed: process %d is dead\n", name->text, name->pid);
    if (result != BFC_READ_OK)
        return REFUSED;
    return job.state == BFC_JOB_ENDED ? ENDED : SHOWN;
}

static int show_target(const struct request *request, int directory) {
    struct bfc_segment_name name;
    int status = find_target(directory, request->directory, request->target, &name);
    return status == SHOWN ? show_segment(request, directory, &name) : status;
}

static int complain_usage(const char *what) {
    fprintf(stderr, "bfcstat: %s; see bfcstat --help\n", what);
    return MISUSED;
}

static int complain_word(const char *word) {
    fprintf(stderr,
            "bfcstat: %s: neither a command (top, trim, sleep, wake, who, plan, record, snapshot, "
            "report, serve) "
            "nor a process id\n",
            word);
    return MISUSED;
}

/* Reads a number of seconds, 0.01 to 1e9. False: the text is no such number. */
static bool parse_seconds(const char *text, double *seconds) {
    char *end;
    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && *seconds >= 0.01 && *seconds <= 1e9;
}

static bool is_number(const char *text) {
    char *end;
    strtod(text, &end);
    return *end == '\0';
}

static bool parse_count(const char *text, size_t *count) {
    char *end;
    *count = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool parse_device(const char *text, long *device) {
    char *end;
    *device = strtol(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *device <= INT32_MAX;
}

static int take_option(int option, struct request *request) {
    switch (option) {
    case 'j':
        request->format = AS_JSON;
        return SHOWN;
    case 'p':
        request->format = AS_PROMETHEUS;
        return SHOWN;
    case 'd':
        request->directory = optarg;
        return SHOWN;
    case 'o':
        request->output = optarg;
        return SHOWN;
    case 'b':
        return bfc_bytes_parse(optarg, UINT64_MAX, &request->bytes) && request->bytes > 0
                   ? SHOWN
                   : complain_usage("--bytes takes a size above 0, with K, M, G or T behind it");
    case 'i':
        return parse_seconds(optarg, &request->interval)
                   ? SHOWN
                   : complain_usage("--interval takes seconds, at least 0.01");
    case 't':
        return parse_seconds(optarg, &request->duration)
                   ? SHOWN
                   : complain_usage("--duration takes seconds, at least 0.01");
    case 'e':
        request->events = true;
        return SHOWN;
    case 'B':
        request->beside = optarg;
        return SHOWN;
    case 'l':
        request->listen = optarg;
        return SHOWN;
    case 'S':
        request->slurm_job = optarg;
        return SHOWN;
    case 'D':
        return parse_device(optarg, &request->device)
                   ? SHOWN
                   : complain_usage("--device takes a device's number, from 0");
    case 'c':
        request->collapsed = true;
        return SHOWN;
    case 's':
        return parse_count(optarg, &request->sites)
                   ? SHOWN
                   : complain_usage("--sites takes a number; 0: all");
    case 'w':
        request->before = is_number(optarg) ? NULL : optarg;
        return request->before || parse_seconds(optarg, &request->between)
                   ? SHOWN
                   : complain_usage("--diff takes seconds, at least 0.01, or a FILE of who -o");
    case 'y':
        request->by_tag = strcmp(optarg, "tag") == 0;
        return request->by_tag || strcmp(optarg, "library") == 0
                   ? SHOWN
                   : complain_usage("--by takes library or tag");
    case 'h':
        fputs(usage, stdout);
        exit(SHOWN);
    case 'v':
        printf("bfcstat %s (segment layout %u)\n", BFC_VERSION, BFC_SEGMENT_VERSION);
        exit(SHOWN);
    default:
        fputs("bfcstat: see bfcstat --help\n", stderr);
        return MISUSED;
    }
}

static const struct option options[] = {
    {"json", no_argument, NULL, 'j'},
    {"prometheus", no_argument, NULL, 'p'},
    {"directory", required_argument, NULL, 'd'},
    {"output", required_argument, NULL, 'o'},
    {"bytes", required_argument, NULL, 'b'},
    {"interval", required_argument, NULL, 'i'},
    {"duration", required_argument, NULL, 't'},
    {"events", no_argument, NULL, 'e'},
    {"beside", required_argument, NULL, 'B'},
    {"listen", required_argument, NULL, 'l'},
    {"slurm-job", required_argument, NULL, 'S'},
    {"collapsed", no_argument, NULL, 'c'},
    {"sites", required_argument, NULL, 's'},
    {"diff", required_argument, NULL, 'w'},
    {"by", required_argument, NULL, 'y'},
    {"device", required_argument, NULL, 'D'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {NULL, 0, NULL, 0},
};

/* Reads all options. `given` receives the letters of the options that the user gave, each once, and
 * must have room for all letters. */
static int parse_options(int count, char **arguments, struct request *request, char *given) {
    int status = SHOWN;
    for (int option;
         status == SHOWN && (option = getopt_long(count, arguments, "ho:", options, NULL)) != -1;) {
        status = take_option(option, request);
        if (status == SHOWN && !strchr(given, option))
            given[strlen(given)] = (char)option;
    }
    return status;
}

struct command {
    const char *name;
    int (*run)(const struct request *request, int directory);
    bool needs_target, needs_output;
    const char *options; /* the letters (getopt's) of the options that the command takes */
    /* Whether the command keeps the capabilities by which an administrator can let bfcstat read all
     * users' shared-memory segments. A command that also reads other files that the user names must
     * give them up, or the user could read other users' files with it. */
    bool keeps_rights;
};

/* Letters of the options that are valid without a command word, when bfcstat shows all jobs or one
 * job. */
#define PLAIN_OPTIONS "jpdS"

#ifndef BFC_TOP
int run_top(const struct request *request, int directory) {
    (void)request;
    (void)directory;
    fputs("bfcstat: built without ncurses, which top needs\n", stderr);
    return REFUSED;
}
#endif

#ifndef BFC_SERVE
int run_serve(const struct request *request, int directory) {
    (void)request;
    (void)directory;
    fputs("bfcstat: built without libmicrohttpd, which serve needs\n", stderr);
    return REFUSED;
}
#endif

static const struct command commands[] = {
    {"top", run_top, false, false, "di", true},
    {"trim", run_trim, true, false, "db", false},
    {"sleep", run_sleep, true, false, "d", false},
    {"wake", run_wake, true, false, "d", false},
    {"who", run_who, true, false, "djocswy", false},
    {"plan", run_plan, true, true, "doD", false},
    {"record", run_record, true, true, "doite", true},
    {"snapshot", run_snapshot, true, true, "dot", false},
    {"report", run_report, true, true, "doB", false},
    {"serve", run_serve, false, false, "dl", true},
};

/* Returns the command whose name is `word`; NULL: there is no such command, or `word` is NULL. */
static const struct command *find_command(const char *word) {
    for (size_t i = 0; word && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, word) == 0)
            return &commands[i];
    return NULL;
}

/* Returns an option's name as the help spells it, without dashes. `letter` is the letter by which
 * getopt_long returns the option. */
static const char *option_name(char letter) {
    const struct option *option = options;
    while (option->name && option->val != letter)
        option++;
    return letter == 'o' ? "o" : option->name;
}

/* Refuses options that have no effect on the command (NULL: no command was given). `given` has the
 * letters of the user's options. */
static int check_options(const char *given, const struct command *command) {
    size_t fitting = strspn(given, command ? command->options : PLAIN_OPTIONS);
    if (!given[fitting])
        return SHOWN;
    const char *name = option_name(given[fitting]);
    fprintf(stderr, "bfcstat: %s takes no %s%s; see bfcstat --help\n",
            command ? command->name : "without a command it", name[1] ? "--" : "-", name);
    return MISUSED;
}

static int parse_arguments(int count, char **arguments, struct request *request,
                           const struct command **command) {
    char given[sizeof options / sizeof options[0]] = "";
    int status = parse_options(count, arguments, request, given);
    if (status != SHOWN)
        return status;
    *command = find_command(arguments[optind]);
    int first = optind + (*command != NULL);
    request->target = first < count ? arguments[first] : NULL;
    if (!*command && request->target && !is_target(request->target))
        return complain_word(request->target);
    if (count - first > 1)
        return complain_usage("at most one PID, SEGMENT or FILE");
    if (*command && (*command)->needs_target && !request->target)
        return complain_usage("this command needs a PID or a FILE");
    if (*command && (*command)->needs_output && !request->output)
        return complain_usage("this command needs -o FILE");
    if (request->output && strcmp(request->output, "-") == 0 &&
        !(*command && (*command)->run == run_report))
        return complain_usage("only report writes to standard output: -o takes a FILE");
    if (request->output && (request->before || request->between > 0))
        return complain_usage("-o saves one moment: it takes no --diff");
    if (*command && !(*command)->needs_target && request->target)
        return complain_usage("this command is about all jobs: it takes no PID");
    if (request->slurm_job && (request->target || *command))
        return complain_usage(
            "--slurm-job is about the table of jobs: it takes no PID and no command");
    if (request->format == AS_PROMETHEUS && request->target)
        return complain_usage("--prometheus shows all jobs: it takes no PID");
    return check_options(given, *command);
}

/* Gives up the capabilities that an administrator may have given to this program so that it can
 * read all users' shared-memory segments (docs/watching.md). With them, a user could have the
 * program read any file of other users. A process of root keeps its capabilities. */
static void give_up_rights(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    if (geteuid() != 0 && syscall(SYS_capset, &header, none) != 0)
        abort();
}

static int flush_output(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "bfcstat: standard output: %s\n", strerror(errno));
    return REFUSED;
}

int main(int count, char **arguments) {
    struct request request = {.directory = BFC_SHARED_FOLDER,
                              .bytes = UINT64_MAX,
                              .listen = "127.0.0.1:9420",
                              .sites = 20,
                              .device = -1};
    const struct command *command = NULL;
    int status = parse_arguments(count, arguments, &request, &command);
    if (status != SHOWN)
        return status;
    if (command && !command->keeps_rights)
        give_up_rights();
    int directory = bfc_segment_directory_open(request.directory);
    if (directory < 0) {
        fprintf(stderr, "bfcstat: %s: %s\n", request.directory, strerror(errno));
        return REFUSED;
    }
    if (command)
        status = command->run(&request, directory);
    else
        status = request.target ? show_target(&request, directory) : list_jobs(&request, directory);
    close(directory);
    return flush_output(status);
}

/*
 * bfcstat: shows the jobs that run with bfcpreload, or one of them in full.
 *
 * It reads the segments that the jobs publish and touches nothing else; segments that dead
 * processes of this user left behind are removed on the way. Exit status: 0 shown, 1 no such job
 * or its segment was refused, 2 wrong usage, 3 the job has ended (its last picture was shown).
 */
#include "tools/bfcstat.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { SHOWN = 0, REFUSED = 1, MISUSED = 2, ENDED = 3 };

/* A segment that is being made is ready within microseconds; a look is repeated that often. */
#define YOUNG_TRIES 20

static const char usage[] =
    "usage: bfcstat [--json] [--directory=FOLDER] [PID | SEGMENT]\n"
    "\n"
    "Without a PID: a table of the jobs that run with bfcpreload, a row for each device they use.\n"
    "With one: that job's devices, memory, counters, coverage and configuration.\n"
    "\n"
    "  --json              print JSON instead (keys: docs/bfcstat.md)\n"
    "  --directory=FOLDER  where the segments are (default " BFC_SEGMENT_DIRECTORY ");\n"
    "                      /proc/PID/root" BFC_SEGMENT_DIRECTORY " looks into a container\n"
    "  --help, --version\n"
    "\n"
    "Segments that dead processes of this user left behind are removed.\n"
    "Exit status: 0 shown, 1 no such job or refused, 2 wrong usage, 3 the job has ended.\n";

struct request {
    bool json;
    const char *directory;
    const char *target;
};

/* --- looking --- */

static enum bfc_read_result read_patiently(int directory, const struct bfc_segment_name *name,
                                           struct bfc_job *job, char *reason, size_t size) {
    enum bfc_read_result result = BFC_READ_YOUNG;
    for (int tries = 0; tries < YOUNG_TRIES && result == BFC_READ_YOUNG; tries++) {
        if (tries)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        result = bfc_segment_read(directory, name, job, reason, size);
    }
    return result;
}

static void look_at(int directory, const struct bfc_segment_name *name, struct findings *findings) {
    struct bfc_job *job = &findings->jobs[findings->job_count];
    char *reason = findings->refused[findings->refused_count];
    enum bfc_read_result result =
        read_patiently(directory, name, job, reason, sizeof findings->refused[0]);
    if (result == BFC_READ_ABSENT)
        return;
    if (bfc_segment_sweep(directory, name, result == BFC_READ_OK ? job : NULL))
        findings->swept[findings->swept_count++] = *name;
    else if (result == BFC_READ_OK)
        findings->job_count++;
    else
        findings->refused_count++;
}

static bool look_at_all(int directory, struct findings *findings) {
    struct bfc_segment_name *names;
    ssize_t listed = bfc_segment_list(directory, &names);
    if (listed < 0)
        return false;
    size_t count = (size_t)listed;
    findings->jobs = calloc(count + 1, sizeof *findings->jobs);
    findings->refused = calloc(count + 1, sizeof *findings->refused);
    findings->swept = calloc(count + 1, sizeof *findings->swept);
    bool enough = findings->jobs && findings->refused && findings->swept;
    for (size_t i = 0; enough && i < count; i++)
        look_at(directory, &names[i], findings);
    free(names);
    return enough;
}

static void free_findings(struct findings *findings) {
    free(findings->jobs);
    free(findings->refused);
    free(findings->swept);
}

static size_t terminal_width(void) {
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int list_jobs(const struct request *request, int directory) {
    struct findings findings = {0};
    if (!look_at_all(directory, &findings)) {
        fprintf(stderr, "bfcstat: %s: %s\n", request->directory, strerror(errno));
        free_findings(&findings);
        return REFUSED;
    }
    if (request->json)
        show_jobs_json(&findings, stdout);
    else
        show_jobs_text(&findings, terminal_width(), stdout);
    for (size_t i = 0; i < findings.refused_count; i++)
        fprintf(stderr, "bfcstat: %s\n", findings.refused[i]);
    for (size_t i = 0; i < findings.swept_count; i++)
        fprintf(stderr, "bfcstat: %s: removed: process %d is dead\n", findings.swept[i].text,
                findings.swept[i].pid);
    free_findings(&findings);
    return SHOWN;
}

/* --- one job --- */

static bool has_library(int pid) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "/libbfcpreload.so") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static void explain_absence(int pid) {
    if (kill(pid, 0) != 0 && errno == ESRCH)
        fprintf(stderr, "bfcstat: no process %d, and no segment of one\n", pid);
    else if (has_library(pid))
        fprintf(stderr,
                "bfcstat: process %d has bfcpreload, but publishes no segment: it has made no CUDA "
                "allocation yet, or BFC_STATS=0 was set, or %s is full\n",
                pid, BFC_SEGMENT_DIRECTORY);
    else
        fprintf(stderr, "bfcstat: process %d runs without bfcpreload\n", pid);
}

/* Of several segments with that pid: the one of our pid namespace, else the only one. */
static const struct bfc_segment_name *choose(const struct bfc_segment_name *names, size_t count,
                                             int pid) {
    uint64_t own = bfc_own_pid_namespace();
    const struct bfc_segment_name *chosen = NULL;
    size_t candidates = 0;
    for (size_t i = 0; i < count; i++) {
        if (names[i].pid != pid)
            continue;
        if (names[i].pid_namespace == own && names[i].uid == geteuid())
            return &names[i];
        if (!chosen || names[i].pid_namespace == own)
            chosen = &names[i];
        candidates++;
    }
    if (candidates <= 1 || chosen->pid_namespace == own)
        return chosen;
    fprintf(stderr, "bfcstat: several jobs have pid %d; name one of their segments:\n", pid);
    for (size_t i = 0; i < count; i++)
        if (names[i].pid == pid)
            fprintf(stderr, "  %s\n", names[i].text);
    return NULL;
}

static bool find_pid(int directory, const struct request *request, int pid,
                     struct bfc_segment_name *name) {
    struct bfc_segment_name *names;
    ssize_t count = bfc_segment_list(directory, &names);
    if (count < 0) {
        fprintf(stderr, "bfcstat: %s: %s\n", request->directory, strerror(errno));
        return false;
    }
    bool known = false;
    for (ssize_t i = 0; i < count && !known; i++)
        known = names[i].pid == pid;
    const struct bfc_segment_name *chosen = known ? choose(names, (size_t)count, pid) : NULL;
    if (!known)
        explain_absence(pid);
    if (chosen)
        *name = *chosen;
    free(names);
    return chosen != NULL;
}

static int show_segment(const struct request *request, int directory,
                        const struct bfc_segment_name *name) {
    struct bfc_job job;
    char reason[512];
    enum bfc_read_result result = read_patiently(directory, name, &job, reason, sizeof reason);
    bool swept = bfc_segment_sweep(directory, name, result == BFC_READ_OK ? &job : NULL);
    if (result == BFC_READ_OK && request->json)
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

/* A decimal number above 0, or -1. */
static int parse_pid(const char *text) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool valid = text[0] >= '1' && text[0] <= '9' && *end == '\0' && errno == 0;
    return valid && value <= INT32_MAX ? (int)value : -1;
}

static int show_target(const struct request *request, int directory) {
    struct bfc_segment_name name;
    int pid = parse_pid(request->target);
    if (pid < 0 && !bfc_segment_name_parse(request->target, &name)) {
        fprintf(stderr,
                "bfcstat: %s: neither a process id nor a segment's name (" BFC_SEGMENT_NAME_PREFIX
                "UID.NAMESPACE.PID)\n",
                request->target);
        return MISUSED;
    }
    if (pid > 0 && !find_pid(directory, request, pid, &name))
        return REFUSED;
    return show_segment(request, directory, &name);
}

/* --- the command line --- */

static int parse_arguments(int count, char **arguments, struct request *request) {
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"directory", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(count, arguments, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'j':
            request->json = true;
            break;
        case 'd':
            request->directory = optarg;
            break;
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
    if (count - optind > 1) {
        fputs("bfcstat: at most one PID or SEGMENT; see bfcstat --help\n", stderr);
        return MISUSED;
    }
    request->target = optind < count ? arguments[optind] : NULL;
    return SHOWN;
}

static int flush(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "bfcstat: standard output: %s\n", strerror(errno));
    return REFUSED;
}

int main(int count, char **arguments) {
    struct request request = {.directory = BFC_SEGMENT_DIRECTORY};
    int status = parse_arguments(count, arguments, &request);
    if (status != SHOWN)
        return status;
    int directory = bfc_segment_directory_open(request.directory);
    if (directory < 0) {
        fprintf(stderr, "bfcstat: %s: %s\n", request.directory, strerror(errno));
        return REFUSED;
    }
    status = request.target ? show_target(&request, directory) : list_jobs(&request, directory);
    close(directory);
    return flush(status);
}

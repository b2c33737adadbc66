/* Finds jobs by their segments (shared-memory files): all jobs of a folder, or the one that the
 * user names. */
#include "tools/bfcstat/bfcstat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/numbers.h"
#include "base/shared_folder.h"
#include "tools/bfcstat/shares.h"
#include "tools/job/client.h"

/* How long to wait for shared-memory segments that their jobs are still initializing, which takes a
 * job some microseconds. The time is for all segments of a folder together, because an empty file
 * that some user put there is never ready. */
#define YOUNG_NS UINT64_C(20000000)

/* How many jobs and pools find_figures reads at most: of one user, of a block of 65,536 user ids
 * (shares.h), and of all users. */
static const struct shares most_jobs = {.user = 256, .block = 400, .all = 1024};
static const struct shares most_pools = {.user = 512, .block = 800, .all = 2048};

/* The longest wait, in milliseconds, until jobs have brought the maps of their regions up to date.
 * A thread of the job does that on request. */
#define REFRESH_MS 200

/* The type of the functions that read a job's shared-memory segment: bfc_segment_read, which reads
 * all of it, and bfc_segment_read_figures, which leaves out the map and the events. */
typedef enum bfc_read_result read_segment(int directory, const struct bfc_segment_name *name,
                                          struct bfc_job *job, char *reason, size_t size);

/* The state of reading all shared-memory segments of a folder, or one segment. */
struct look {
    int directory;
    read_segment *read;
    /* until when a shared-memory segment that is not initialized yet is read again */
    uint64_t young_until_ns;
    /* until when to wait for jobs to bring the maps of their regions up to date */
    struct bfc_bounded_wait wait;
    /* `most`: how many jobs can be found at most; `room`: how many elements the array of jobs
     * has */
    size_t most, room;
};

static struct look begin_look(int directory, read_segment *read, uint64_t young_ns, size_t most) {
    return (struct look){directory, read, bfc_now_ns() + young_ns, bfc_ask_wait(REFRESH_MS),
                         most,      0};
}

/* Asks the job to refresh its map, waits for that, and reads the job's shared-memory segment. If
 * the job does not answer in time, the map is the one that the job wrote last. */
static enum bfc_read_result read_refreshed(struct look *look, const struct bfc_segment_name *name,
                                           struct bfc_job *job, char *reason, size_t size) {
    bfc_segment_refresh(look->directory, name, &look->wait, reason, size);
    for (;;) {
        enum bfc_read_result result = look->read(look->directory, name, job, reason, size);
        if (result != BFC_READ_YOUNG || bfc_now_ns() >= look->young_until_ns)
            return result;
        bfc_nap(1000000);
    }
}

enum bfc_read_result read_job(int directory, const struct bfc_segment_name *name,
                              struct bfc_job *job, char *reason, size_t size) {
    struct look look = begin_look(directory, bfc_segment_read, YOUNG_NS, 1);
    return read_refreshed(&look, name, job, reason, size);
}

/* Makes room in findings->jobs for one more job. The array grows step by step, because most files
 * of the folder may turn out to be no shared-memory segments of jobs. */
static bool make_room(struct look *look, struct findings *findings) {
    if (findings->job_count < look->room)
        return true;
    size_t room = bfc_min(look->most, look->room ? look->room * 2 : most_jobs.all);
    /* The reader needs elements that are zero. With calloc, those that are never used take no
     * memory. */
    struct bfc_job *larger = calloc(room, sizeof *larger);
    if (!larger)
        return false;
    if (findings->jobs)
        memcpy(larger, findings->jobs, findings->job_count * sizeof *larger);
    free(findings->jobs);
    findings->jobs = larger;
    look->room = room;
    return true;
}

static void look_at(struct look *look, const struct bfc_segment_name *name,
                    struct findings *findings) {
    struct bfc_job *job = &findings->jobs[findings->job_count];
    struct refusal *refusal = &findings->refused[findings->refused_count];
    enum bfc_read_result result =
        read_refreshed(look, name, job, refusal->line, sizeof refusal->line);
    if (result == BFC_READ_ABSENT)
        return;
    if (bfc_segment_sweep(look->directory, name, result == BFC_READ_OK ? job : NULL)) {
        findings->swept[findings->swept_count++] = *name;
        /* The next job is read into this element, and the reader needs an element of zeros. */
        memset(job, 0, sizeof *job);
    } else if (result == BFC_READ_OK) {
        findings->job_count++;
    } else {
        refusal->of_permission =
            faccessat(look->directory, name->text, R_OK, AT_EACCESS) != 0 && errno == EACCES;
        findings->refused_count++;
    }
}

/* Reads the shared-memory segments `names`. Asks all jobs to refresh their maps before it waits for
 * the first of them, so that the jobs do so at the same time. */
static bool look_at_all(int directory, const struct bfc_segment_name *names, size_t count,
                        read_segment *read, uint64_t young_ns, struct findings *findings) {
    char reason[sizeof findings->refused->line];
    for (size_t i = 0; i < count; i++)
        bfc_segment_refresh(directory, &names[i], NULL, reason, sizeof reason);
    struct look look = begin_look(directory, read, young_ns, count);
    for (size_t i = 0; i < count; i++) {
        if (!make_room(&look, findings))
            return false;
        look_at(&look, &names[i], findings);
    }
    return true;
}

static bool look_for(int directory, const struct bfc_segment_name *names, size_t count,
                     read_segment *read, uint64_t young_ns, struct findings *findings) {
    findings->refused = calloc(count + 1, sizeof *findings->refused);
    findings->swept = calloc(count + 1, sizeof *findings->swept);
    return findings->refused && findings->swept &&
           look_at_all(directory, names, count, read, young_ns, findings);
}

bool find_jobs(int directory, struct findings *findings) {
    struct bfc_segment_name *names;
    ssize_t listed = bfc_segment_list(directory, &names);
    if (listed < 0)
        return false;
    bool enough = look_for(directory, names, (size_t)listed, bfc_segment_read, YOUNG_NS, findings);
    free(names);
    return enough;
}

struct listing {
    struct shares shares;
    struct bfc_segment_name *names;
    size_t count, left_out, impostors;
};

/* Adds the shared-memory segment to the listing, unless its user has too many (shares.h). Any user
 * may give a file any name, so a file counts only if the user in its name owns it. Returns true, so
 * that the next file is visited. */
static bool list_name(void *context, int directory, const struct bfc_segment_name *name) {
    struct listing *listing = context;
    struct stat status;
    if (fstatat(directory, name->text, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return true; /* the file was removed after the folder was read */
    if (status.st_uid != name->uid)
        listing->impostors++;
    else if (shares_take(&listing->shares, name->uid))
        listing->names[listing->count++] = *name;
    else
        listing->left_out++;
    return true;
}

static bool leave_out_pools(struct findings *findings) {
    struct shares *shares = malloc(sizeof *shares);
    if (!shares)
        return false;
    *shares = most_pools;
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_SEGMENT_POOLS; k++) {
            struct bfc_segment_pool *pool = &findings->jobs[i].pools[k];
            if (pool->state == BFC_POOL_ACTIVE &&
                !shares_take(shares, findings->jobs[i].name.uid)) {
                pool->state = BFC_POOL_UNUSED;
                findings->left_out_pools++;
            }
        }
    free(shares);
    return true;
}

bool find_figures(int directory, struct findings *findings) {
    struct listing *listing = malloc(sizeof *listing);
    struct bfc_segment_name *names = calloc(most_jobs.all, sizeof *names);
    bool good = false;
    if (listing && names) {
        *listing = (struct listing){.shares = most_jobs, .names = names};
        good = bfc_segment_names_visit(directory, SIZE_MAX, list_name, listing) &&
               look_for(directory, names, listing->count, bfc_segment_read_figures, 0, findings) &&
               leave_out_pools(findings);
        findings->left_out = listing->left_out;
        findings->impostors = listing->impostors;
    }
    free(names);
    free(listing);
    return good;
}

void free_findings(struct findings *findings) {
    free(findings->identities);
    free(findings->gpus);
    free(findings->jobs);
    free(findings->refused);
    free(findings->swept);
}

static bool has_library(int pid) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "/libbfcpreload.so");
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
                "allocation yet, or is not pooled (BFC_DISABLE, BFC_ONLY, BFC_NOT, a bound that "
                "cannot be read), or BFC_STATS=0 was set, or %s is full\n",
                pid, BFC_SHARED_FOLDER);
    else
        fprintf(stderr, "bfcstat: process %d runs without bfcpreload\n", pid);
}

/* Chooses a shared-memory segment of a process with this pid. The user's own in bfcstat's pid
 * namespace comes first, then any other in that namespace, then any if it is the only one. NULL:
 * there is none, or there are several in other pid namespaces, which a message lists. */
static const struct bfc_segment_name *choose_job(const struct bfc_segment_name *names, size_t count,
                                                 int pid) {
    uint64_t own = bfc_pid_namespace();
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

static bool find_pid(int directory, const char *folder, int pid, struct bfc_segment_name *name) {
    struct bfc_segment_name *names;
    ssize_t count = bfc_segment_list(directory, &names);
    if (count < 0) {
        fprintf(stderr, "bfcstat: %s: %s\n", folder, strerror(errno));
        return false;
    }
    bool known = false;
    for (ssize_t i = 0; i < count && !known; i++)
        known = names[i].pid == pid;
    const struct bfc_segment_name *chosen = known ? choose_job(names, (size_t)count, pid) : NULL;
    if (!known)
        explain_absence(pid);
    if (chosen)
        *name = *chosen;
    free(names);
    return chosen;
}

/* Returns the number in the text, or -1 if the text is no decimal number above 0. */
static int parse_pid(const char *text) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool valid = text[0] >= '1' && text[0] <= '9' && *end == '\0' && errno == 0;
    return valid && value <= INT32_MAX ? (int)value : -1;
}

bool is_target(const char *text) {
    struct bfc_segment_name name;
    return parse_pid(text) > 0 || bfc_segment_name_parse(text, &name);
}

int find_target(int directory, const char *folder, const char *target,
                struct bfc_segment_name *name) {
    int pid = parse_pid(target);
    if (pid < 0 && !bfc_segment_name_parse(target, name)) {
        fprintf(stderr,
                "bfcstat: %s: neither a process id nor a segment's name (" BFC_SEGMENT_NAME_PREFIX
                "UID.NAMESPACE.PID)\n",
                target);
        return MISUSED;
    }
    return pid > 0 && !find_pid(directory, folder, pid, name) ? REFUSED : SHOWN;
}

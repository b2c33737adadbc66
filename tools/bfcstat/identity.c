/* Finds out which user, Slurm job, pod and container a job belongs to: from its process's cgroup
 * paths and environment, from the names of the kubelet's log files, and from the user database. */
#include "tools/bfcstat/identity.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_name.h"
#include "base/shared_folder.h"

#define CONTAINER_ID 64u /* hexadecimal digits */
#define POD_UID 36u      /* the length of a UUID: 8-4-4-4-12 hexadecimal digits */

struct known_identity {
    char segment[BFC_SEGMENT_NAME_MAX];
    uint64_t created_ns;
    struct job_identity identity;
    bool seen;
};

/* Reads the number that follows `word` in a path, if a slash or the end of the path follows it: 123
 * in "/job_123/" with the word "/job_". If there is none, `number` is unchanged. */
static void read_number(const char *path, const char *word, char *number, size_t size) {
    const char *found = strstr(path, word);
    size_t length = found ? strspn(found += strlen(word), "0123456789") : 0;
    if (length && length < size && (found[length] == '/' || found[length] == '\0'))
        snprintf(number, size, "%.*s", (int)length, found);
}

static size_t count_hexadecimal(const char *text) {
    return strspn(text, "0123456789abcdef");
}

/* Reads the UUID of a pod at the start of the text; false: there is none. Names of systemd's slices
 * have '_' where the UUID has '-'. */
static bool read_pod(const char *text, char *uid) {
    char read[POD_UID + 1] = "";
    for (unsigned i = 0; i < POD_UID; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' && text[i] != '_' : count_hexadecimal(&text[i]) == 0)
            return false;
        read[i] = dash ? '-' : text[i];
    }
    memcpy(uid, read, sizeof read);
    return true;
}

static void read_containers(const char *path, struct job_identity *identity) {
    for (const char *at = path; (at = strstr(at, "pod")); at++)
        if (read_pod(at + 3, identity->pod_uid))
            break;
    for (const char *at = path; *at; at += strcspn(at, "0123456789abcdef")) {
        size_t length = count_hexadecimal(at);
        if (length == CONTAINER_ID)
            snprintf(identity->container_id, sizeof identity->container_id, "%.64s", at);
        at += length;
    }
}

void identity_read_cgroup(const char *lines, struct job_identity *identity) {
    char path[1024];
    for (size_t length; *lines; lines += length, lines += *lines == '\n') {
        length = strcspn(lines, "\n");
        const size_t kept = length < sizeof path ? length : sizeof path - 1;
        memcpy(path, lines, kept);
        path[kept] = 0;
        if (strstr(path, "/user@"))
            /* users choose the names of the cgroups below their own user@UID.service, so these
             * names prove nothing */
            continue;
        read_containers(path, identity);
        if (!strstr(path, "slurm"))
            continue;
        read_number(path, "/job_", identity->slurm_job, sizeof identity->slurm_job);
        read_number(path, "/step_", identity->slurm_step, sizeof identity->slurm_step);
    }
}

/* If `setting` is `variable`, which is "NAME=", followed by a number, writes the number to
 * `number`. Otherwise leaves `number` unchanged. */
static void take_number(const char *setting, const char *variable, char *number, size_t size) {
    size_t length = strlen(variable);
    if (strncmp(setting, variable, length) != 0)
        return;
    const char *value = setting + length;
    if (value[0] && strlen(value) < size && value[strspn(value, "0123456789")] == '\0')
        snprintf(number, size, "%s", value);
}

void identity_read_environment(FILE *environment, struct job_identity *identity) {
    char *setting = NULL;
    size_t size = 0;
    while (getdelim(&setting, &size, '\0', environment) > 0) {
        take_number(setting, "SLURM_JOB_ID=", identity->slurm_job, sizeof identity->slurm_job);
        take_number(setting, "SLURM_STEP_ID=", identity->slurm_step, sizeof identity->slurm_step);
    }
    free(setting);
}

/* Splits a log file's name POD_NAMESPACE_CONTAINER-ID.log into its parts, if its ID is
 * identity->container_id; otherwise returns false. */
static bool take_name(const char *name, struct job_identity *identity) {
    const char *pod_end = strchr(name, '_');
    const char *namespace_end = pod_end ? strchr(pod_end + 1, '_') : NULL;
    const char *id = namespace_end ? strstr(namespace_end, identity->container_id) : NULL;
    if (!id || id - namespace_end < 3 || id[-1] != '-' || strcmp(id + CONTAINER_ID, ".log") != 0)
        return false;
    snprintf(identity->pod, sizeof identity->pod, "%.*s", (int)(pod_end - name), name);
    snprintf(identity->pod_namespace, sizeof identity->pod_namespace, "%.*s",
             (int)(namespace_end - pod_end - 1), pod_end + 1);
    snprintf(identity->container, sizeof identity->container, "%.*s", (int)(id - namespace_end - 2),
             namespace_end + 1);
    return true;
}

void identity_find_names(const char *logs, struct job_identity *identity) {
    DIR *folder = identity->container_id[0] ? opendir(logs) : NULL;
    if (!folder)
        return;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        if (take_name(entry->d_name, identity))
            break;
    closedir(folder);
}

/* Reads /proc/PID/NAME, cut off at `size`. The text is empty if the file cannot be read. */
static void read_process_file(const char *pid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%.16s/%s", pid, name);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
}

/* Returns when the process started, in clock ticks since boot (field 22 of /proc/PID/stat); 0: not
 * known. The fields are counted from the last bracket, because field 2, the program's name in
 * brackets, may itself hold blanks and brackets. */
static uint64_t start_of(const char *pid) {
    char text[1024];
    read_process_file(pid, "stat", text, sizeof text);
    const char *field = strrchr(text, ')');
    for (int i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

/* Returns the last number in the line of `status` that begins with `word`; -1: there is no such
 * line. `word` includes the line feed before that line. */
static long last_number(const char *status, const char *word) {
    const char *line = strstr(status, word);
    const char *end = line ? line + 1 + strcspn(line + 1, "\n") : NULL;
    while (line && end > line && isdigit((unsigned char)end[-1]))
        end--;
    return line ? strtol(end, NULL, 10) : -1;
}

/* A process that may be that of a job, as /proc/PID/status and stat show it. */
struct process {
    char pid[16]; /* the process's id in bfcstat's pid namespace */
    long inner;   /* the process's id in its own pid namespace: the last number of NSpid */
    long uids[3]; /* the real, effective and saved user id */
    uint64_t start;
};

static struct process read_process(const char *pid) {
    struct process process = {.inner = -1};
    char status[4096];
    snprintf(process.pid, sizeof process.pid, "%.15s", pid);
    read_process_file(pid, "status", status, sizeof status);
    const char *line = strstr(status, "\nUid:");
    if (!line || sscanf(line, "\nUid: %ld %ld %ld", &process.uids[0], &process.uids[1],
                        &process.uids[2]) != 3)
        return process;
    process.inner = last_number(status, "\nNSpid:");
    process.start = start_of(pid);
    return process;
}

/* Whether the process is the one that published the shared-memory segment. A job can write anything
 * into its segment, such as another process's pid, so the owner of the segment's file must also be
 * a user of the process. */
static bool is_process_of(const struct process *process, const struct bfc_job *job) {
    long uid = job->name.uid;
    return process->inner == job->header.pid && process->start == job->header.start_time &&
           (process->uids[0] == uid || process->uids[1] == uid || process->uids[2] == uid);
}

/* All processes in /proc. They are needed to find jobs of other pid namespaces, and are read only
 * once for all of these. */
struct processes {
    struct process *list;
    size_t count;
    bool read;
};

static void read_processes(struct processes *processes) {
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    processes->read = true;
    while (folder && (entry = readdir(folder))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        /* At each power of two the list is full and doubles. If there is no memory for that, the
         * rest of the processes are left out. */
        if ((processes->count & (processes->count - 1)) == 0) {
            size_t capacity = processes->count ? processes->count * 2 : 1;
            struct process *larger =
                reallocarray(processes->list, capacity, sizeof *processes->list);
            if (!larger)
                break;
            processes->list = larger;
        }
        processes->list[processes->count++] = read_process(entry->d_name);
    }
    if (folder)
        closedir(folder);
}

/* Finds the job's process, and writes its pid in bfcstat's pid namespace to `pid`. False: none of
 * the processes that bfcstat sees is the job's. */
static bool find_process(const struct bfc_job *job, struct processes *processes, char *pid,
                         size_t size) {
    snprintf(pid, size, "%" PRId32, job->header.pid);
    if (job->header.pid_namespace == bfc_pid_namespace()) {
        struct process process = read_process(pid);
        return is_process_of(&process, job);
    }
    if (!processes->read)
        read_processes(processes);
    for (size_t i = 0; i < processes->count; i++)
        if (is_process_of(&processes->list[i], job)) {
            snprintf(pid, size, "%s", processes->list[i].pid);
            return true;
        }
    return false;
}

/* Sets identity->comm to the program's name without folders. If bfcstat does not see the job's
 * process (`pid` is NULL), the name is the first word of the command in the job's shared-memory
 * segment. */
static void name_program(const struct bfc_job *job, const char *pid,
                         struct job_identity *identity) {
    char name[256] = "";
    if (pid)
        read_process_file(pid, "comm", name, sizeof name);
    if (!name[0])
        snprintf(name, sizeof name, "%s", job->header.command);
    name[strcspn(name, pid ? "\n" : " ")] = '\0';
    snprintf(identity->comm, sizeof identity->comm, "%.15s", bfc_file_name(name));
}

void identity_name_user(uint32_t uid, char *text, size_t size) {
    const struct passwd *user = getpwuid(uid);
    if (user)
        snprintf(text, size, "%s", user->pw_name);
    else
        snprintf(text, size, "%" PRIu32, uid);
}

static void read_environment(const char *pid, struct job_identity *identity) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%.16s/environ", pid);
    FILE *environment = fopen(path, "re");
    if (environment) {
        identity_read_environment(environment, identity);
        fclose(environment);
    }
}

static void identify_job(const struct bfc_job *job, const char *logs, struct processes *processes,
                         struct job_identity *identity) {
    char pid[16], lines[8192];
    bool known = find_process(job, processes, pid, sizeof pid);
    name_program(job, known ? pid : NULL, identity);
    identity_name_user(job->name.uid, identity->user, sizeof identity->user);
    if (!known)
        return;
    read_process_file(pid, "cgroup", lines, sizeof lines);
    identity_read_cgroup(lines, identity);
    identity_find_names(logs, identity);
    if (!identity->slurm_job[0])
        read_environment(pid, identity);
}

static const struct known_identity *find_known(struct identities *identities,
                                               const struct bfc_job *job) {
    for (size_t i = 0; i < identities->count; i++) {
        struct known_identity *known = &identities->known[i];
        if (known->created_ns == job->header.created_ns &&
            strcmp(known->segment, job->name.text) == 0) {
            known->seen = true;
            return known;
        }
    }
    return NULL;
}

static void forget_unseen(struct identities *identities) {
    size_t kept = 0;
    for (size_t i = 0; i < identities->count; i++)
        if (identities->known[i].seen)
            identities->known[kept++] = identities->known[i];
    identities->count = kept;
    for (size_t i = 0; i < kept; i++)
        identities->known[i].seen = false;
}

static void add_known(struct identities *identities, const struct bfc_job *job,
                      const struct job_identity *identity) {
    struct known_identity *known = &identities->known[identities->count++];
    *known = (struct known_identity){
        .created_ns = job->header.created_ns, .identity = *identity, .seen = true};
    snprintf(known->segment, sizeof known->segment, "%s", job->name.text);
}

bool identify_jobs(struct identities *identities, const char *logs, struct findings *findings) {
    size_t most = identities->count + findings->job_count;
    struct known_identity *larger = realloc(identities->known, (most + 1) * sizeof *larger);
    if (!larger)
        return false;
    identities->known = larger;
    struct processes processes = {0};
    findings->identities = calloc(findings->job_count + 1, sizeof *findings->identities);
    for (size_t i = 0; findings->identities && i < findings->job_count; i++) {
        const struct known_identity *known = find_known(identities, &findings->jobs[i]);
        if (known) {
            findings->identities[i] = known->identity;
            continue;
        }
        identify_job(&findings->jobs[i], logs, &processes, &findings->identities[i]);
        add_known(identities, &findings->jobs[i], &findings->identities[i]);
    }
    forget_unseen(identities);
    free(processes.list);
    return findings->identities;
}

/* Whether the job belongs to Slurm's job `wanted`, which is JOB or JOB.STEP. */
static bool is_of_slurm_job(const struct job_identity *identity, const char *wanted) {
    size_t length = strlen(identity->slurm_job);
    if (!length || strncmp(wanted, identity->slurm_job, length) != 0)
        return false;
    const char *rest = wanted + length;
    return !rest[0] || (rest[0] == '.' && strcmp(rest + 1, identity->slurm_step) == 0);
}

void keep_slurm_job(const char *wanted, struct findings *findings) {
    size_t kept = 0;
    for (size_t i = 0; i < findings->job_count; i++) {
        if (!is_of_slurm_job(&findings->identities[i], wanted))
            continue;
        if (kept < i) {
            findings->jobs[kept] = findings->jobs[i];
            findings->identities[kept] = findings->identities[i];
        }
        kept++;
    }
    findings->job_count = kept;
}

void free_identities(struct identities *identities) {
    free(identities->known);
    *identities = (struct identities){0};
}

/* Reading segments: names, checks, the guarded copy, liveness, sweeping. */
#include "tools/segment_reader.h"

#include "tools/segment_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tries to copy a pool's section at one consistent moment; each costs well under a microsecond. */
#define MAX_TRIES 20000
#define TRIES_BEFORE_YIELD 64

_Static_assert(sizeof(struct bfc_segment_header) % 8 == 0 &&
                   sizeof(struct bfc_segment_pool) % 8 == 0 && BFC_SEGMENT_POOLS <= 32,
               "copied by 64-bit words; one bit a pool in bfc_job.torn");

int bfc_segment_directory_open(const char *path) {
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool bfc_segment_name_parse(const char *text, struct bfc_segment_name *name) {
    unsigned uid;
    unsigned long pid_namespace;
    int pid;
    char again[BFC_SEGMENT_NAME_MAX];
    if (sscanf(text, BFC_SEGMENT_NAME_PREFIX "%u.%lu.%d", &uid, &pid_namespace, &pid) != 3)
        return false;
    /* Written back it must be the same: no sign, no leading zero, no overflow, nothing behind. */
    snprintf(again, sizeof again, BFC_SEGMENT_NAME_FORMAT, uid, pid_namespace, pid);
    if (pid <= 0 || strcmp(again + 1, text) != 0)
        return false;
    *name = (struct bfc_segment_name){.uid = uid, .pid_namespace = pid_namespace, .pid = pid};
    memcpy(name->text, again + 1, sizeof again - 1);
    return true;
}

uint64_t bfc_own_pid_namespace(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* --- liveness --- */

/* State letter and start time (fields 3 and 22) of /proc/PID/stat. */
static bool read_process(int32_t pid, char *state, uint64_t *start_time) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *field = strrchr(text, ')'); /* the name before it may hold anything */
    unsigned long long start;
    if (!field || sscanf(field,
                         ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                         " %*s %*s %llu",
                         state, &start) != 2)
        return false;
    *start_time = start;
    return true;
}

static bool pid_is_free(int32_t pid) {
    return kill(pid, 0) != 0 && errno == ESRCH;
}

/* Whether the process that started then still runs; for a pid of this pid namespace. */
static bool process_runs(int32_t pid, uint64_t start_time) {
    char state;
    uint64_t found;
    if (pid_is_free(pid))
        return false;
    if (!read_process(pid, &state, &found))
        return true;
    return state != 'Z' && state != 'X' && found == start_time;
}

static enum bfc_job_state find_state(const struct bfc_segment_header *header) {
    if (header->owner & FUTEX_OWNER_DIED)
        return BFC_JOB_ENDED;
    if (header->pid_namespace == bfc_own_pid_namespace())
        return process_runs(header->pid, header->start_time) ? BFC_JOB_RUNNING : BFC_JOB_ENDED;
    return header->owner & FUTEX_TID_MASK ? BFC_JOB_RUNNING : BFC_JOB_UNKNOWN;
}

/* --- the guarded copy --- */

/* What is mapped now; a fault in it puts zeros there instead. */
static struct {
    char *base;
    size_t size;
    volatile sig_atomic_t faulted;
} guard;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    const char *address = info->si_addr;
    if (!guard.base || address < guard.base || address >= guard.base + guard.size ||
        mmap(guard.base, guard.size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        signal(number, SIG_DFL); /* not ours: the access is repeated and takes its usual course */
    guard.faulted = 1;
}

/* Copies 64-bit words that another process may be writing. */
static void copy_words(void *to, const void *from, size_t size) {
    uint64_t *target = to;
    const _Atomic uint64_t *source = from;
    for (size_t i = 0; i < size / 8; i++)
        target[i] = atomic_load_explicit(&source[i], memory_order_relaxed);
}

/* What begins with its sequence number. */
static bool copy_once(void *to, const void *from, size_t size) {
    const _Atomic uint64_t *sequence = from;
    uint64_t before = atomic_load_explicit(sequence, memory_order_acquire);
    copy_words(to, from, size);
    atomic_thread_fence(memory_order_acquire);
    return before % 2 == 0 && atomic_load_explicit(sequence, memory_order_relaxed) == before;
}

/* False: the copy is torn. What a dead job left does not change any more: one try tells. */
static bool copy_whole(void *to, const void *from, size_t size, bool dead) {
    for (int tries = 0; tries < (dead ? 1 : MAX_TRIES); tries++) {
        if (copy_once(to, from, size))
            return true;
        if (tries >= TRIES_BEFORE_YIELD)
            sched_yield();
    }
    return false;
}

/* The counters last: the histograms are not behind them. False: those are torn. */
static bool copy_pool(struct bfc_segment_pool *to, const struct bfc_segment_pool *from, bool dead) {
    copy_words(to, from, sizeof *to);
    to->host_waits = bfc_host_waits(to);
    return copy_whole(&to->stats, &from->stats, sizeof to->stats, dead);
}

static bool is_sound(const struct bfc_map_row *row) {
    return row->pool < BFC_SEGMENT_POOLS && row->size > 0 && row->cell_bytes > 0 &&
           (row->size - 1) / row->cell_bytes < BFC_MAP_CELLS &&
           row->start <= UINT64_MAX - row->size;
}

static void copy_map(struct bfc_map *to, const struct bfc_map *from, bool dead) {
    uint64_t kept = 0;
    if (!copy_whole(to, from, sizeof *to, dead) || to->rows > BFC_MAP_ROWS)
        to->rows = 0;
    for (uint64_t i = 0; i < to->rows; i++)
        if (is_sound(&to->row[i]))
            to->row[kept++] = to->row[i];
    to->rows = kept;
}

/* Of a ring of `size` events, those of the last round that are whole. */
static size_t copy_events(struct bfc_event *to, const struct bfc_event *from, uint64_t size,
                          uint64_t next) {
    size_t copied = 0;
    for (uint64_t n = next > size ? next - size : 0; n != next; n++) {
        const struct bfc_event *slot = &from[n % size];
        const _Atomic uint64_t *stamp = (const _Atomic uint64_t *)&slot->stamp;
        if (atomic_load_explicit(stamp, memory_order_acquire) != n + 1 || n + 1 == 0)
            continue;
        copy_words(&to[copied], slot, sizeof *slot);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(stamp, memory_order_relaxed) == n + 1)
            copied++;
    }
    return copied;
}

static void copy_rings(struct bfc_job *job, const char *base) {
    const struct bfc_event *landmarks = (const void *)(base + BFC_SEGMENT_LANDMARKS_OFFSET);
    const struct bfc_event *events = (const void *)(base + BFC_SEGMENT_EVENTS_OFFSET);
    job->landmark_count =
        copy_events(job->landmarks, landmarks, BFC_LANDMARKS, job->header.next_landmark);
    job->event_count = copy_events(job->events, events, BFC_EVENTS, job->header.next_event);
}

/* --- checks --- */

static enum bfc_read_result refuse(const struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum bfc_read_result refuse(const struct reading *reading, const char *format, ...) {
    int used = snprintf(reading->reason, reading->reason_size, "%s: ", reading->name->text);
    va_list arguments;
    va_start(arguments, format);
    if (used >= 0 && (size_t)used < reading->reason_size)
        vsnprintf(reading->reason + used, reading->reason_size - (size_t)used, format, arguments);
    va_end(arguments);
    return BFC_READ_REFUSED;
}

static enum bfc_read_result check_magic(const struct reading *reading, uint64_t magic,
                                        uint32_t version) {
    if (magic == 0) {
        refuse(reading, "not ready: its job is still making it");
        return BFC_READ_YOUNG;
    }
    if (magic == __builtin_bswap64(BFC_SEGMENT_MAGIC))
        return refuse(reading, "written by a machine of the other byte order");
    if (magic != BFC_SEGMENT_MAGIC)
        return refuse(reading, "not a segment of bfcpreload (its first bytes are others)");
    if (version != BFC_SEGMENT_VERSION)
        return refuse(reading, "layout version %u; this program reads version %u", version,
                      BFC_SEGMENT_VERSION);
    return BFC_READ_OK;
}

static bool terminated(const char *text, size_t size) {
    return memchr(text, '\0', size) != NULL;
}

static enum bfc_read_result check_header(const struct reading *reading,
                                         const struct bfc_segment_header *header) {
    if (header->header_size != sizeof *header || header->total_size != BFC_SEGMENT_SIZE ||
        header->pool_size != sizeof(struct bfc_segment_pool) ||
        header->pool_count != BFC_SEGMENT_POOLS)
        return refuse(reading, "damaged: its sizes are not those of layout version %u",
                      BFC_SEGMENT_VERSION);
    if (header->pid != reading->name->pid || header->uid != reading->name->uid ||
        header->pid_namespace != reading->name->pid_namespace)
        return refuse(reading, "damaged: its name is not that of the process in it");
    if (!terminated(header->command, sizeof header->command) ||
        !terminated(header->library, sizeof header->library) ||
        !terminated(header->job, sizeof header->job) ||
        !terminated(header->complaints, sizeof header->complaints) ||
        !terminated(header->configuration, sizeof header->configuration))
        return refuse(reading, "damaged: a text in it has no end");
    return BFC_READ_OK;
}

static enum bfc_read_result check_pool(const struct reading *reading, unsigned index,
                                       const struct bfc_segment_pool *pool) {
    if (pool->state > BFC_POOL_ENDED)
        return refuse(reading, "damaged: pool %u has no known state", index);
    if (pool->state != BFC_POOL_UNUSED && (pool->device < 0 || pool->device > INT32_MAX))
        return refuse(reading, "damaged: pool %u has no possible device", index);
    if (!terminated(pool->device_name, sizeof pool->device_name))
        return refuse(reading, "damaged: the name of pool %u's device has no end", index);
    return BFC_READ_OK;
}

static enum bfc_read_result copy_segment(const struct reading *reading, void *context) {
    struct bfc_job *job = context;
    const struct bfc_segment_header *header = (const void *)reading->base;
    uint64_t magic =
        atomic_load_explicit((const _Atomic uint64_t *)&header->magic, memory_order_acquire);
    enum bfc_read_result result = check_magic(reading, magic, header->version);
    if (result != BFC_READ_OK)
        return result;
    copy_words(&job->header, header, sizeof job->header);
    result = check_header(reading, &job->header);
    if (result != BFC_READ_OK)
        return result;
    job->state = find_state(&job->header);
    const struct bfc_segment_pool *pools = (const void *)(reading->base + BFC_SEGMENT_POOLS_OFFSET);
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS && result == BFC_READ_OK; i++) {
        if (!copy_pool(&job->pools[i], &pools[i], job->state == BFC_JOB_ENDED))
            job->torn |= 1u << i;
        result = check_pool(reading, i, &job->pools[i]);
    }
    copy_map(&job->map, (const void *)(reading->base + BFC_SEGMENT_MAP_OFFSET),
             job->state == BFC_JOB_ENDED);
    copy_rings(job, reading->base);
    return result;
}

static enum bfc_read_result visit_guarded(struct reading *reading, char *base, size_t size,
                                          segment_visit *visit, void *context) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, former;
    guard.faulted = 0;
    guard.size = size;
    guard.base = base;
    reading->base = base;
    sigaction(SIGBUS, &action, &former);
    enum bfc_read_result result = visit(reading, context);
    sigaction(SIGBUS, &former, NULL);
    guard.base = NULL;
    return guard.faulted ? refuse(reading, "truncated while it was read") : result;
}

/* The version stands in the first 16 bytes: another version is told from a truncated segment. */
static enum bfc_read_result check_beginning(const struct reading *reading, int file, off_t size) {
    struct {
        uint64_t magic;
        uint32_t version, header_size;
    } beginning = {0};
    if (size == 0) {
        refuse(reading, "not ready: it is empty");
        return BFC_READ_YOUNG;
    }
    if (pread(file, &beginning, sizeof beginning, 0) != (ssize_t)sizeof beginning)
        return refuse(reading, "truncated: %lld bytes where %llu are expected", (long long)size,
                      (unsigned long long)BFC_SEGMENT_SIZE);
    enum bfc_read_result result = check_magic(reading, beginning.magic, beginning.version);
    if (result == BFC_READ_OK && size < (off_t)BFC_SEGMENT_SIZE)
        return refuse(reading, "truncated: %lld bytes where %llu are expected", (long long)size,
                      (unsigned long long)BFC_SEGMENT_SIZE);
    return result;
}

static enum bfc_read_result check_file(const struct reading *reading, int file) {
    struct stat status;
    if (fstat(file, &status) != 0)
        return refuse(reading, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse(reading, "not a regular file");
    if (status.st_uid != reading->name->uid)
        return refuse(reading, "belongs to user %u, yet its name says user %u",
                      (unsigned)status.st_uid, reading->name->uid);
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        return refuse(reading, "others than its owner may write it (mode %04o)",
                      (unsigned)status.st_mode & 07777u);
    return check_beginning(reading, file, status.st_size);
}

static enum bfc_read_result visit_file(struct reading *reading, int file, int protection,
                                       segment_visit *visit, void *context) {
    enum bfc_read_result result = check_file(reading, file);
    if (result != BFC_READ_OK)
        return result;
    void *base = mmap(NULL, BFC_SEGMENT_SIZE, protection, MAP_SHARED, file, 0);
    if (base == MAP_FAILED)
        return refuse(reading, "cannot be mapped: %s", strerror(errno));
    result = visit_guarded(reading, base, BFC_SEGMENT_SIZE, visit, context);
    munmap(base, BFC_SEGMENT_SIZE);
    return result;
}

enum bfc_read_result segment_visit_file(int directory, struct reading *reading, bool writable,
                                        segment_visit *visit, void *context) {
    /* Non-blocking: a fifo of that name must not hold us up. */
    int access = writable ? O_RDWR : O_RDONLY;
    int file = openat(directory, reading->name->text, access | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) {
        refuse(reading, "no such segment");
        return BFC_READ_ABSENT;
    }
    if (file < 0 && errno == EACCES)
        return refuse(reading, "belongs to user %u, who alone may %s it", reading->name->uid,
                      writable ? "write" : "read");
    if (file < 0)
        return refuse(reading, "%s",
                      errno == ELOOP ? "a symbolic link, not a segment" : strerror(errno));
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    enum bfc_read_result result = visit_file(reading, file, protection, visit, context);
    close(file);
    return result;
}

enum bfc_read_result bfc_segment_read(int directory, const struct bfc_segment_name *name,
                                      struct bfc_job *job, char *reason, size_t size) {
    struct reading reading = {.name = name, .reason = reason, .reason_size = size};
    memset(job, 0, sizeof *job);
    job->name = *name;
    return segment_visit_file(directory, &reading, false, copy_segment, job);
}

/* --- the directory --- */

static int by_pid(const void *a, const void *b) {
    const struct bfc_segment_name *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return strcmp(x->text, y->text);
}

static bool append(struct bfc_segment_name **names, size_t *count,
                   const struct bfc_segment_name *name) {
    if ((*count & (*count - 1)) == 0) { /* full at each power of two */
        size_t capacity = *count ? *count * 2 : 1;
        struct bfc_segment_name *larger = realloc(*names, capacity * sizeof **names);
        if (!larger)
            return false;
        *names = larger;
    }
    (*names)[(*count)++] = *name;
    return true;
}

ssize_t bfc_segment_list(int directory, struct bfc_segment_name **names) {
    *names = NULL;
    int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = again < 0 ? NULL : fdopendir(again);
    if (!stream)
        return -1;
    size_t count = 0;
    bool enough = true;
    struct bfc_segment_name name;
    for (struct dirent *entry; enough && (entry = readdir(stream));)
        if (bfc_segment_name_parse(entry->d_name, &name))
            enough = append(names, &count, &name);
    closedir(stream);
    if (!enough) {
        free(*names);
        *names = NULL;
        errno = ENOMEM;
        return -1;
    }
    if (count)
        qsort(*names, count, sizeof **names, by_pid);
    return (ssize_t)count;
}

bool bfc_segment_sweep(int directory, const struct bfc_segment_name *name,
                       const struct bfc_job *job) {
    bool dead = job ? job->state == BFC_JOB_ENDED
                    : name->pid_namespace == bfc_own_pid_namespace() && pid_is_free(name->pid);
    struct stat status;
    return dead && fstatat(directory, name->text, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           unlinkat(directory, name->text, 0) == 0;
}

/* --- derived figures --- */

const char *bfc_job_configured(const struct bfc_job *job, const char *name, size_t *length) {
    size_t name_length = strlen(name);
    const char *line = job->header.configuration;
    while (*line) {
        size_t line_length = strcspn(line, "\n");
        if (line_length > name_length && line[name_length] == '=' &&
            memcmp(line, name, name_length) == 0) {
            *length = line_length - name_length - 1;
            return line + name_length + 1;
        }
        line += line_length + (line[line_length] == '\n');
    }
    return NULL;
}

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct bfc_pooled_calls bfc_job_pooled(const struct bfc_job *job) {
    struct bfc_pooled_calls calls = {job->header.pooled_allocations, job->header.pooled_frees};
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        if (job->pools[i].state == BFC_POOL_UNUSED)
            continue;
        calls.allocations = add(calls.allocations, job->pools[i].stats.allocations);
        calls.frees = add(calls.frees, job->pools[i].stats.frees);
    }
    return calls;
}

uint64_t bfc_pool_cached(const struct bfc_pool_stats *stats) {
    return add(add(stats->clean, stats->dirty), stats->limbo);
}

double bfc_pool_fragmentation(const struct bfc_pool_stats *stats) {
    uint64_t cached = bfc_pool_cached(stats);
    if (cached == 0 || stats->largest_free >= cached)
        return 0;
    if (stats->largest_free == 0)
        return -1;
    return (double)(cached - stats->largest_free) / (double)cached;
}

double bfc_pool_hit_rate(const struct bfc_pool_stats *stats) {
    double hits = (double)stats->hits, all = hits + (double)stats->misses;
    return all > 0 ? hits / all : -1;
}

unsigned bfc_map_row_cells(const struct bfc_map_row *row) {
    return (unsigned)((row->size - 1) / row->cell_bytes) + 1;
}

void bfc_pool_sizes(const struct bfc_segment_pool *pool, uint64_t sizes[BFC_SIZE_BINS]) {
    for (unsigned bin = 0; bin < BFC_SIZE_BINS; bin++) {
        sizes[bin] = 0;
        for (unsigned lane = 0; lane < BFC_LANES; lane++)
            sizes[bin] += pool->lanes[lane].sizes[bin];
    }
}

uint64_t bfc_latency_quantile(const uint64_t bins[BFC_LATENCY_BINS], double share) {
    double all = 0, so_far = 0;
    for (unsigned bin = 0; bin < BFC_LATENCY_BINS; bin++)
        all += (double)bins[bin];
    if (all <= 0)
        return 0;
    unsigned bin = 0;
    for (; bin < BFC_LATENCY_BINS - 1; bin++)
        if ((so_far += (double)bins[bin]) >= share * all && so_far > 0)
            break;
    return bfc_latency_bin_start(bin + 1);
}

/*
 * The published segment: creation, sections, counters, the end.
 *
 * The file lies in /dev/shm, where shm_open finds it. Its pages are allocated at once: if /dev/shm
 * is full, that fails, and the job gets no SIGBUS later. No descriptor stays open, because a
 * program may close all descriptors that it has not opened itself.
 */
#include "interpose/stats/published_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/config/launcher_ranks.h"
#include "interpose/host/quiet.h"
#include "interpose/table/feature.h"
#include "segment/left_over.h"
#include "segment/process_life.h"

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static bool opened;
/* the mapped segment; NULL: not published; set once, under `opening` */
static struct bfc_segment_header *segment;
static char segment_path[96];

/* The counters of a process that has no segment, and of a forked child, for which the segment is
 * not mapped. */
static struct bfc_segment_header unpublished;

struct bfc_segment_header *bfc_segment_published(void) {
    struct bfc_segment_header *published = bfc_load_acquire(&segment);
    return published && bfc_process_if_made() ? published : NULL;
}

struct bfc_segment_header *bfc_segment_counters(void) {
    struct bfc_segment_header *published = bfc_segment_published();
    return published ? published : &unpublished;
}

static void read_own_command(char *command, size_t size) {
    int file = bfc_open("/proc/self/cmdline", O_RDONLY, 0);
    if (file < 0)
        return;
    ssize_t length = read(file, command, size - 1);
    close(file);
    if (length < 0)
        length = 0;
    while (length > 0 && command[length - 1] == '\0')
        length--;
    command[length] = '\0';
    for (ssize_t i = 0; i < length; i++)
        if (command[i] == '\0')
            command[i] = ' ';
}

static void fill_ranks(struct bfc_segment_header *header) {
    struct bfc_ranks ranks;
    bfc_ranks_read(&ranks, getenv);
    memcpy(header->job, ranks.job, sizeof header->job);
    header->rank = ranks.rank;
    header->local_rank = ranks.local_rank;
    header->ranks = ranks.ranks;
}

static void fill_identity(struct bfc_segment_header *header, const struct bfc_process *process) {
    header->version = BFC_SEGMENT_VERSION;
    header->header_size = sizeof *header;
    header->total_size = BFC_SEGMENT_SIZE;
    header->pool_size = sizeof(struct bfc_segment_pool);
    header->pool_count = BFC_SEGMENT_POOLS;
    header->pid = getpid();
    header->uid = getuid();
    header->pid_namespace = bfc_pid_namespace();
    header->start_time = bfc_process_start_time(getpid());
    header->created_ns = bfc_wall_clock_ns();
    read_own_command(header->command, sizeof header->command);
    snprintf(header->library, sizeof header->library, "%s", BFC_VERSION);
    fill_ranks(header);
    bfc_options_print(&process->options, header->configuration, sizeof header->configuration);
    header->configuration_errors = process->configuration_errors;
    snprintf(header->complaints, sizeof header->complaints, "%.*s",
             (int)sizeof header->complaints - 1, process->complaints);
}

/* A file of this name is left over, from this process before an exec or from a dead one with this
 * pid, so it can be removed. */
static int create_segment_file(void) {
    snprintf(segment_path, sizeof segment_path, BFC_SHARED_FOLDER BFC_SEGMENT_NAME_FORMAT, getuid(),
             (unsigned long)bfc_pid_namespace(), getpid());
    unlink(segment_path);
    return bfc_open(segment_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

/* Each signal interrupts the allocation. Programs with fast timers need many attempts. */
static bool allocate_pages(int file) {
    int attempts = 100;
    do
        errno = posix_fallocate(file, 0, (off_t)BFC_SEGMENT_SIZE);
    while (errno == EINTR && --attempts > 0);
    return errno == 0;
}

static struct bfc_segment_header *map_own_segment(void) {
    int file = create_segment_file();
    if (file < 0)
        return NULL;
    void *memory = MAP_FAILED;
    /* The mode is set again, because the program's umask may have removed bits of it. */
    if (fchmod(file, 0600) == 0 && allocate_pages(file))
        memory = mmap(NULL, BFC_SEGMENT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int reason = errno;
    close(file);
    errno = reason;
    if (memory != MAP_FAILED && madvise(memory, BFC_SEGMENT_SIZE, MADV_DONTFORK) != 0) {
        munmap(memory, BFC_SEGMENT_SIZE);
        memory = MAP_FAILED;
    }
    if (memory == MAP_FAILED) {
        reason = errno;
        unlink(segment_path);
        errno = reason;
        return NULL;
    }
    return memory;
}

/* A file larger than a limit on file sizes raises a signal, which must not end the program. */
static struct bfc_segment_header *map_segment_quietly(void) {
    struct bfc_quiet quiet;
    bfc_quiet_begin(&quiet);
    struct bfc_segment_header *made = map_own_segment();
    bfc_quiet_end(&quiet);
    return made;
}

/* Copies into the new segment what was counted before there was one. */
static void adopt_counts(struct bfc_segment_header *published) {
    memcpy(published->forwarded_allocations, unpublished.forwarded_allocations,
           sizeof published->forwarded_allocations);
    memcpy(published->forwarded_frees, unpublished.forwarded_frees,
           sizeof published->forwarded_frees);
    memcpy(published->bypassed_calls, unpublished.bypassed_calls, sizeof published->bypassed_calls);
    memcpy(published->bypassed_bytes, unpublished.bypassed_bytes, sizeof published->bypassed_bytes);
    published->gate = unpublished.gate;
}

void bfc_segment_open(const struct bfc_process *process) {
    if (bfc_load_acquire(&opened))
        return;
    int reason = errno, cancel = bfc_cancel_disable();
    pthread_mutex_lock(&opening);
    if (!opened)
        bfc_left_over_sweep();
    if (!opened && process->options.stats) {
        struct bfc_segment_header *published = map_segment_quietly();
        if (published) {
            fill_identity(published, process);
            adopt_counts(published);
            bfc_store_release(&published->magic, BFC_SEGMENT_MAGIC);
            bfc_store_release(&segment, published);
            BFC_TELL_FEATURES(segment_opened, process, published);
        } else {
            bfc_log(BFC_LOG_WARN, "no segment: %s in " BFC_SHARED_FOLDER, strerror(errno));
        }
    }
    bfc_store_release(&opened, true);
    pthread_mutex_unlock(&opening);
    bfc_cancel_restore(cancel);
    errno = reason;
}

/* A forked child leaves the file alone, because it is the parent's. */
__attribute__((destructor)) static void remove_segment(void) {
    if (bfc_process_if_made() && bfc_load_acquire(&segment))
        unlink(segment_path);
}

static struct bfc_segment_pool *pool_sections(void) {
    struct bfc_segment_header *published = bfc_load_acquire(&segment);
    return published ? bfc_segment_sections(published) : NULL;
}

/* Which sections are taken: some arena still writes to them, even if its context has ended. */
static bool taken[BFC_SEGMENT_POOLS];
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER; /* guards `taken` */

unsigned bfc_segment_section_index(const struct bfc_segment_pool *section) {
    return (unsigned)(section - pool_sections());
}

/* Adds the counts of a section's former pool to the totals of the process. */
static void retire_counts(struct bfc_segment_pool *section) {
    bfc_fetch_add_relaxed(&bfc_segment_counters()->pooled_allocations, section->stats.allocations);
    bfc_fetch_add_relaxed(&bfc_segment_counters()->pooled_frees, section->stats.frees);
}

static struct bfc_segment_pool *take_section_in_state(enum bfc_pool_state state) {
    struct bfc_segment_pool *all = pool_sections();
    for (unsigned i = 0; all && i < BFC_SEGMENT_POOLS; i++)
        if (!taken[i] && all[i].state == (uint64_t)state) {
            taken[i] = true;
            return &all[i];
        }
    return NULL;
}

struct bfc_segment_pool *bfc_segment_take_section(void) {
    pthread_mutex_lock(&taking);
    struct bfc_segment_pool *section = take_section_in_state(BFC_POOL_UNUSED);
    if (!section && (section = take_section_in_state(BFC_POOL_ENDED)))
        retire_counts(section);
    pthread_mutex_unlock(&taking);
    return section;
}

void bfc_segment_return_section(struct bfc_segment_pool *section) {
    pthread_mutex_lock(&taking);
    taken[section - pool_sections()] = false;
    pthread_mutex_unlock(&taking);
}

void bfc_segment_count_forwarded_allocation(enum bfc_forward_reason reason) {
    bfc_fetch_add_relaxed(&bfc_segment_counters()->forwarded_allocations[reason], 1);
}

void bfc_segment_count_forwarded_free(enum bfc_forward_reason reason) {
    bfc_fetch_add_relaxed(&bfc_segment_counters()->forwarded_frees[reason], 1);
}

void bfc_segment_count_bypassed(enum bfc_bypass_kind kind, uint64_t bytes) {
    bfc_fetch_add_relaxed(&bfc_segment_counters()->bypassed_calls[kind], 1);
    bfc_fetch_add_relaxed(&bfc_segment_counters()->bypassed_bytes[kind], bytes);
}

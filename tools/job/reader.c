#include "tools/job/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "base/shared_folder.h"
#include "segment/process_life.h"
#include "segment/segment_file.h"
#include "tools/job/guard.h"

/* How often a part of the shared-memory segment is copied again without a pause if the job changed
 * it during the copy. A try takes about a microsecond. */
#define TRIES_WITHOUT_NAP 64
/* If TRIES_WITHOUT_NAP copies in a row fail, the job's thread may have been preempted or stopped in
 * the middle of a change. The reader then sleeps NAP_NS before each further try, but READ_WAIT_NS
 * at most for the whole shared-memory segment. */
#define NAP_NS 50000
#define READ_WAIT_NS (50 * 1000 * 1000)
/* The limit in place of READ_WAIT_NS in bfc_segment_read_figures. That function is called for all
 * jobs one after another, and a user may have many jobs that write all the time, so the wait for
 * each job must be short. */
#define FIGURES_WAIT_NS (200 * 1000)

_Static_assert(sizeof(struct bfc_segment_header) % 8 == 0 &&
                   sizeof(struct bfc_segment_pool) % 8 == 0 && BFC_SEGMENT_POOLS <= 32,
               "copied by 64-bit words; one bit a pool in bfc_job.torn");

static enum bfc_job_state find_state(const struct bfc_segment_header *header) {
    if (header->owner & FUTEX_OWNER_DIED)
        return BFC_JOB_ENDED;
    if (header->pid_namespace == bfc_pid_namespace())
        return bfc_process_is_gone(header->pid, header->start_time) ? BFC_JOB_ENDED
                                                                    : BFC_JOB_RUNNING;
    return header->owner & FUTEX_TID_MASK ? BFC_JOB_RUNNING : BFC_JOB_UNKNOWN;
}

/* Copies 64-bit words that another process may be writing. */
static void copy_words(void *to, const void *from, size_t size) {
    uint64_t *target = to;
    const uint64_t *source = from;
    for (size_t i = 0; i < size / 8; i++)
        target[i] = bfc_load_relaxed(&source[i]);
}

/* Copies a structure that begins with a sequence number, which the writer makes odd before a change
 * and even after it. False: the structure was being changed. */
static bool copy_once(void *to, const void *from, size_t size) {
    const uint64_t *sequence = from;
    uint64_t before = bfc_load_acquire(sequence);
    copy_words(to, from, size);
    bfc_barrier_acquire();
    return before % 2 == 0 && bfc_load_relaxed(sequence) == before;
}

/* Copies a structure that begins with a sequence number, again and again until a copy was made
 * without a change by the writer. False: even the last copy may be half old and half new. `wait`
 * bounds the waits for all parts of the shared-memory segment; NULL: the job is dead and changes
 * nothing any more, so one try suffices. */
static bool copy_whole(void *to, const void *from, size_t size, struct bfc_bounded_wait *wait) {
    for (int tries = 1;; tries++) {
        if (copy_once(to, from, size))
            return true;
        if (!wait || (tries >= TRIES_WITHOUT_NAP && !bfc_bounded_wait_nap(wait)))
            return false;
    }
}

/* Copies a pool's section of the shared-memory segment. The counters (`stats`) are copied last, so
 * that they are no older than the histograms. False: even the last copy of the counters may be half
 * old and half new. */
static bool copy_pool(struct bfc_segment_pool *to, const struct bfc_segment_pool *from,
                      struct bfc_bounded_wait *wait) {
    copy_words(to, from, sizeof *to);
    bfc_sum_lanes(to);
    return copy_whole(&to->stats, &from->stats, sizeof to->stats, wait);
}

static bool is_sound(const struct bfc_map_row *row) {
    return row->pool < BFC_SEGMENT_POOLS && row->size > 0 && row->cell_bytes > 0 &&
           (row->size - 1) / row->cell_bytes < BFC_MAP_CELLS &&
           row->start <= UINT64_MAX - row->size;
}

static void copy_map(struct bfc_map *to, const struct bfc_map *from,
                     struct bfc_bounded_wait *wait) {
    uint64_t kept = 0;
    if (!copy_whole(to, from, sizeof *to, wait) || to->rows > BFC_MAP_ROWS)
        to->rows = 0;
    for (uint64_t i = 0; i < to->rows; i++)
        if (is_sound(&to->row[i]))
            to->row[kept++] = to->row[i];
    to->rows = kept;
}

/* Copies the last `size` events from a ring with `size` slots, except those that are not written
 * yet or are overwritten during the copy. `next` is the number that the next event will get.
 * Returns how many events were copied. */
static size_t copy_events(struct bfc_event *to, const struct bfc_event *from, uint64_t size,
                          uint64_t next) {
    size_t copied = 0;
    for (uint64_t n = next > size ? next - size : 0; n != next; n++) {
        const struct bfc_event *slot = &from[n % size];
        const uint64_t *stamp = &slot->stamp;
        if (bfc_load_acquire(stamp) != n + 1 || n + 1 == 0)
            continue;
        copy_words(&to[copied], slot, sizeof *slot);
        bfc_barrier_acquire();
        if (bfc_load_relaxed(stamp) == n + 1)
            copied++;
    }
    return copied;
}

static enum bfc_read_result check_pool(const struct bfc_segment_look *look, unsigned index,
                                       const struct bfc_segment_pool *pool) {
    if (pool->state > BFC_POOL_ENDED)
        return bfc_segment_refuse(look, "damaged: pool %u has an unknown state", index);
    if (pool->memory > BFC_MEMORY_HOST)
        return bfc_segment_refuse(look, "damaged: pool %u has an unknown kind of memory", index);
    if (pool->state != BFC_POOL_UNUSED && (pool->device < 0 || pool->device > INT32_MAX))
        return bfc_segment_refuse(look, "damaged: pool %u has an impossible device number", index);
    if (!memchr(pool->device_name, '\0', sizeof pool->device_name) ||
        !memchr(pool->device_bus_id, '\0', sizeof pool->device_bus_id))
        return bfc_segment_refuse(look, "damaged: a text of pool %u's device is not terminated",
                                  index);
    return BFC_READ_OK;
}

/* Whether the pool's section is in use. An unused one is all zeros and is not copied, because the
 * caller's copy is all zeros already. */
static bool is_used(const struct bfc_segment_pool *from) {
    return bfc_load_acquire(&from->state) != BFC_POOL_UNUSED;
}

static enum bfc_read_result copy_pools(const struct bfc_segment_look *look, const char *base,
                                       struct bfc_bounded_wait *wait, struct bfc_job *job) {
    const struct bfc_segment_pool *pools = (const void *)(base + BFC_SEGMENT_POOLS_OFFSET);
    enum bfc_read_result result = BFC_READ_OK;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS && result == BFC_READ_OK; i++) {
        if (!is_used(&pools[i]))
            continue;
        if (!copy_pool(&job->pools[i], &pools[i], wait))
            job->torn |= 1u << i;
        result = check_pool(look, i, &job->pools[i]);
    }
    return result;
}

static void copy_rings(struct bfc_job *job, const char *base) {
    const struct bfc_event *landmarks = (const void *)(base + BFC_SEGMENT_LANDMARKS_OFFSET);
    const struct bfc_event *events = (const void *)(base + BFC_SEGMENT_EVENTS_OFFSET);
    job->landmark_count =
        copy_events(job->landmarks, landmarks, BFC_LANDMARKS, job->header.next_landmark);
    job->event_count = copy_events(job->events, events, BFC_EVENTS, job->header.next_event);
}

struct reading {
    struct bfc_job *job;
    /* whether the map and the events are left out, which are most of the shared-memory segment */
    bool figures;
};

static enum bfc_read_result copy_segment(const struct bfc_segment_look *look, char *base,
                                         void *context) {
    const struct reading *reading = context;
    struct bfc_job *job = reading->job;
    const struct bfc_segment_header *header = (const void *)base;
    uint64_t magic = bfc_load_acquire(&header->magic);
    enum bfc_read_result result = bfc_segment_check_magic(look, magic, header->version);
    if (result != BFC_READ_OK)
        return result;
    copy_words(&job->header, header, sizeof job->header);
    result = bfc_segment_check_header(look, &job->header);
    if (result != BFC_READ_OK)
        return result;
    job->state = find_state(&job->header);
    uint64_t now = bfc_now_ns();
    uint64_t until = now + (reading->figures ? FIGURES_WAIT_NS : READ_WAIT_NS);
    struct bfc_bounded_wait time = bfc_bounded_wait_until(until, now, NAP_NS);
    struct bfc_bounded_wait *wait = job->state == BFC_JOB_ENDED ? NULL : &time;
    result = copy_pools(look, base, wait, job);
    if (reading->figures)
        return result;
    copy_map(&job->map, (const void *)(base + BFC_SEGMENT_MAP_OFFSET), wait);
    copy_rings(job, base);
    return result;
}

enum bfc_read_result bfc_segment_read(int directory, const struct bfc_segment_name *name,
                                      struct bfc_job *job, char *reason, size_t size) {
    const struct bfc_segment_look look = {.name = name, .reason = reason, .reason_size = size};
    struct reading reading = {.job = job};
    memset(job, 0, sizeof *job);
    job->name = *name;
    return bfc_segment_visit_guarded(&look, directory, false, copy_segment, &reading);
}

enum bfc_read_result bfc_segment_read_figures(int directory, const struct bfc_segment_name *name,
                                              struct bfc_job *job, char *reason, size_t size) {
    const struct bfc_segment_look look = {.name = name, .reason = reason, .reason_size = size};
    struct reading reading = {.job = job, .figures = true};
    job->name = *name;
    enum bfc_read_result result =
        bfc_segment_visit_guarded(&look, directory, false, copy_segment, &reading);
    if (result != BFC_READ_OK)
        memset(job, 0, sizeof *job);
    return result;
}

struct names {
    struct bfc_segment_name *list;
    size_t count;
    bool no_memory;
};

static int by_pid(const void *a, const void *b) {
    const struct bfc_segment_name *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return strcmp(x->text, y->text);
}

static bool append_name(void *context, int directory, const struct bfc_segment_name *name) {
    struct names *names = context;
    (void)directory;
    if ((names->count & (names->count - 1)) == 0) { /* the list is full at each power of two */
        size_t capacity = names->count ? names->count * 2 : 1;
        struct bfc_segment_name *larger = realloc(names->list, capacity * sizeof *larger);
        names->no_memory = !larger;
        if (!larger)
            return false;
        names->list = larger;
    }
    names->list[names->count++] = *name;
    return true;
}

ssize_t bfc_segment_list(int directory, struct bfc_segment_name **list) {
    struct names names = {0};
    *list = NULL;
    if (!bfc_segment_names_visit(directory, SIZE_MAX, append_name, &names))
        return -1;
    if (names.no_memory) {
        free(names.list);
        errno = ENOMEM;
        return -1;
    }
    if (names.count)
        qsort(names.list, names.count, sizeof *names.list, by_pid);
    *list = names.list;
    return (ssize_t)names.count;
}

bool bfc_segment_sweep(int directory, const struct bfc_segment_name *name,
                       const struct bfc_job *job) {
    bool dead =
        job ? job->state == BFC_JOB_ENDED
            : name->pid_namespace == bfc_pid_namespace() && bfc_process_is_gone(name->pid, 0);
    return dead && bfc_segment_remove(directory, name);
}

const char *bfc_job_configured(const struct bfc_job *job, const char *name, size_t *length) {
    return bfc_configuration_find(job->header.configuration, sizeof job->header.configuration, name,
                                  length);
}

struct bfc_pooled_calls bfc_job_pooled(const struct bfc_job *job) {
    struct bfc_pooled_calls calls = {job->header.pooled_allocations, job->header.pooled_frees};
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        if (job->pools[i].state == BFC_POOL_UNUSED)
            continue;
        calls.allocations = bfc_add_saturating(calls.allocations, job->pools[i].stats.allocations);
        calls.frees = bfc_add_saturating(calls.frees, job->pools[i].stats.frees);
    }
    return calls;
}

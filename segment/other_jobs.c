#include "segment/other_jobs.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/shared_folder.h"
#include "segment/figures.h"
#include "segment/queue.h"
#include "segment/segment_file.h"

struct visit {
    uint64_t pid_namespace;
    bfc_segment_name_visit *each;
    void *context;
};

static bool visit_if_ours(void *context, int directory, const struct bfc_segment_name *name) {
    const struct visit *visit = context;
    if (name->uid != getuid() || name->pid_namespace != visit->pid_namespace)
        return true;
    return visit->each(visit->context, directory, name);
}

static void visit_ours(bfc_segment_name_visit *each, void *context) {
    struct visit visit = {.pid_namespace = bfc_pid_namespace(), .each = each, .context = context};
    int directory = bfc_segment_directory_open(BFC_SHARED_FOLDER);
    if (directory < 0)
        return;
    bfc_segment_names_visit(directory, BFC_FOLDER_ENTRIES_MOST, visit_if_ours, &visit);
    close(directory);
}

/* Whether the job has died, by the kernel's mark in the robust futex of its helper thread. Its pid
 * may still be in use: a zombie keeps its pid, and so does a process that became another program by
 * exec. */
static bool is_dead(int file) {
    uint32_t owner = 0;
    return !bfc_segment_read_at(file, &owner, sizeof owner,
                                offsetof(struct bfc_segment_header, owner)) ||
           (owner & FUTEX_OWNER_DIED);
}

struct search {
    const uint8_t *uuid;
    struct bfc_other_job *found;
    size_t count, most;
};

static bool read_job_command(int file, struct bfc_other_job *job) {
    if (!bfc_segment_read_at(file, job->command, sizeof job->command,
                             offsetof(struct bfc_segment_header, command)))
        return false;
    job->command[sizeof job->command - 1] = '\0';
    for (char *c = job->command; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return true;
}

/* Reads one member of a section. A whole section would not fit on the stack of a small thread. */
#define READ_MEMBER(file, section, member, to)                                                     \
    bfc_segment_read_at(file, to, sizeof((struct bfc_segment_pool *)0)->member,                    \
                        BFC_SEGMENT_POOLS_OFFSET +                                                 \
                            (section) * (uint64_t)sizeof(struct bfc_segment_pool) +                \
                            offsetof(struct bfc_segment_pool, member))

/* Adds up the figures of the job's pools on the device; false: the job has no pool there. */
static bool read_pools(int file, const uint8_t *uuid, struct bfc_other_job *job) {
    struct bfc_pool_stats stats;
    struct bfc_segment_pages pages;
    uint64_t state, memory;
    uint8_t its_uuid[16];
    bool there = false;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        if (!READ_MEMBER(file, i, state, &state))
            return there;
        if (state != BFC_POOL_ACTIVE || !READ_MEMBER(file, i, memory, &memory) ||
            memory != BFC_MEMORY_DEVICE || !READ_MEMBER(file, i, device_uuid, its_uuid) ||
            memcmp(its_uuid, uuid, sizeof its_uuid) != 0 || !READ_MEMBER(file, i, stats, &stats) ||
            !READ_MEMBER(file, i, pages, &pages) || !READ_MEMBER(file, i, awaited, &job->awaited))
            continue;
        /* Memory that is asleep is not on the device, so it is subtracted: first from the bytes in
         * use, since a job gives its ready memory back before it sleeps, and the remainder from the
         * cached bytes. */
        uint64_t cached = bfc_pool_cached(&stats);
        job->in_use += bfc_subtract_saturating(stats.in_use, pages.asleep);
        job->cached +=
            bfc_subtract_saturating(cached, bfc_subtract_saturating(pages.asleep, stats.in_use));
        job->asleep += pages.asleep;
        job->regions += stats.regions;
        there = true;
    }
    return there;
}

static bool read_all_waiters(int file, struct bfc_waiter waiters[BFC_WAITERS]) {
    return bfc_segment_read_at(file, waiters, BFC_WAITERS * sizeof *waiters,
                               offsetof(struct bfc_segment_header, waiters));
}

/* Reads which threads of the job wait for memory of the device; the bytes of those that wait for
 * memory of other devices become 0. */
static bool read_waiters(int file, const uint8_t *uuid, struct bfc_other_job *job) {
    uint8_t its_uuid[16];
    if (!read_all_waiters(file, job->waiters))
        return false;
    for (unsigned i = 0; i < BFC_WAITERS; i++) {
        struct bfc_waiter *waiter = &job->waiters[i];
        if (waiter->bytes && (waiter->pool >= BFC_SEGMENT_POOLS ||
                              !READ_MEMBER(file, waiter->pool, device_uuid, its_uuid) ||
                              memcmp(its_uuid, uuid, sizeof its_uuid) != 0)) {
            job->waits_elsewhere |= bfc_waiter_is_there(waiter, bfc_kernel_now_ns());
            waiter->bytes = 0;
        }
    }
    return true;
}

static bool look_at_job(void *context, int directory, const struct bfc_segment_name *name) {
    struct search *search = context;
    struct bfc_other_job *job = &search->found[search->count];
    const struct bfc_segment_look look = {.name = name};
    int file;
    if (name->pid == getpid() || bfc_pid_is_free(name->pid) ||
        bfc_segment_file_open(&look, directory, false, &file) != BFC_READ_OK)
        return true;
    *job = (struct bfc_other_job){.pid = name->pid};
    if (!is_dead(file) && read_job_command(file, job) && read_pools(file, search->uuid, job) &&
        read_waiters(file, search->uuid, job))
        search->count++;
    close(file);
    return search->count < search->most;
}

size_t bfc_other_jobs_on(const uint8_t uuid[16], struct bfc_other_job *found, size_t most) {
    struct search search = {.uuid = uuid, .found = found, .most = most};
    visit_ours(look_at_job, &search);
    return search.count;
}

/* Returns the index in process->holding of the device on which the segment's pool with index
 * `section` lies; adds the device if it is not there yet. BFC_DEVICES_MOST: the array is full, or
 * the segment has no such pool. */
static uint32_t find_holding(int file, uint64_t section, struct bfc_claimant *process) {
    struct bfc_holding holding = {.in_use = 0};
    uint32_t i = 0;
    if (section >= BFC_SEGMENT_POOLS ||
        !READ_MEMBER(file, section, device_uuid, holding.device_uuid) ||
        !READ_MEMBER(file, section, device_total, &holding.total))
        return BFC_DEVICES_MOST;
    while (i < process->holdings && memcmp(process->holding[i].device_uuid, holding.device_uuid,
                                           sizeof holding.device_uuid) != 0)
        i++;
    if (i == process->holdings && i < BFC_DEVICES_MOST)
        process->holding[process->holdings++] = holding;
    return i;
}

static void read_holdings(int file, struct bfc_claimant *process) {
    struct bfc_pool_stats stats;
    uint64_t state, memory;
    for (uint64_t section = 0; section < BFC_SEGMENT_POOLS; section++) {
        if (!READ_MEMBER(file, section, state, &state) || state != BFC_POOL_ACTIVE ||
            !READ_MEMBER(file, section, memory, &memory) || memory != BFC_MEMORY_DEVICE ||
            !READ_MEMBER(file, section, stats, &stats))
            continue;
        uint32_t i = find_holding(file, section, process);
        if (i < BFC_DEVICES_MOST)
            process->holding[i].in_use += stats.in_use;
    }
}

static bool read_claims(int file, struct bfc_claimant *process) {
    struct bfc_waiter waiters[BFC_WAITERS];
    uint64_t now = bfc_kernel_now_ns();
    bool some = false;
    if (!read_all_waiters(file, waiters))
        return false;
    for (uint32_t i = 0; i < BFC_WAITERS; i++) {
        uint32_t holding = bfc_waiter_is_there(&waiters[i], now)
                               ? find_holding(file, waiters[i].pool, process)
                               : BFC_DEVICES_MOST;
        if (holding < BFC_DEVICES_MOST)
            process->claim[i] = (struct bfc_claim){waiters[i].bytes, waiters[i].since_ns, holding};
        some |= holding < BFC_DEVICES_MOST;
    }
    return some;
}

struct claimants {
    struct bfc_claimant *found;
    size_t count, most;
};

static bool look_for_claims(void *context, int directory, const struct bfc_segment_name *name) {
    struct claimants *claimants = context;
    struct bfc_claimant *process = &claimants->found[claimants->count];
    const struct bfc_segment_look look = {.name = name};
    int file;
    if (bfc_pid_is_free(name->pid) ||
        bfc_segment_file_open(&look, directory, false, &file) != BFC_READ_OK)
        return true;
    *process = (struct bfc_claimant){.pid = name->pid};
    if (!is_dead(file) && read_claims(file, process)) {
        read_holdings(file, process);
        claimants->count++;
    }
    close(file);
    return claimants->count < claimants->most;
}

size_t bfc_claimants_find(struct bfc_claimant *found, size_t most) {
    struct claimants claimants = {.found = found, .most = most};
    visit_ours(look_for_claims, &claimants);
    return claimants.count;
}

static struct bfc_segment_header *map_job_segment(const struct bfc_segment_look *look,
                                                  int directory) {
    int file;
    if (bfc_segment_file_open(look, directory, true, &file) != BFC_READ_OK)
        return NULL;
    struct bfc_segment_header *header = bfc_segment_file_map(file, true);
    close(file);
    if (header && bfc_segment_check_header(look, header) == BFC_READ_OK)
        return header;
    if (header)
        munmap(header, BFC_SEGMENT_SIZE);
    return NULL;
}

struct bfc_segment_header *bfc_other_job_map(int32_t pid) {
    const struct bfc_segment_name name = bfc_segment_name_of(getuid(), bfc_pid_namespace(), pid);
    const struct bfc_segment_look look = {.name = &name};
    int directory = bfc_segment_directory_open(BFC_SHARED_FOLDER);
    if (directory < 0)
        return NULL;
    struct bfc_segment_header *header = map_job_segment(&look, directory);
    close(directory);
    return header;
}

static bool has_waiters(const struct bfc_segment_look *look, int directory) {
    struct bfc_waiter waiters[BFC_WAITERS];
    int file;
    bool some = false;
    if (bfc_segment_file_open(look, directory, false, &file) != BFC_READ_OK)
        return false;
    if (read_all_waiters(file, waiters))
        for (unsigned i = 0; i < BFC_WAITERS; i++)
            some |= waiters[i].bytes != 0;
    close(file);
    return some;
}

static bool wake_waiters(void *context, int directory, const struct bfc_segment_name *name) {
    const struct bfc_segment_look look = {.name = name};
    (void)context;
    if (name->pid == getpid() || !has_waiters(&look, directory))
        return true;
    struct bfc_segment_header *header = map_job_segment(&look, directory);
    if (header) {
        bfc_waiters_wake(header);
        munmap(header, BFC_SEGMENT_SIZE);
    }
    return true;
}

void bfc_other_jobs_wake(void) {
    visit_ours(wake_waiters, NULL);
}

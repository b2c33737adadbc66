/*
 * The published segment: creation, sections, counters, the end; and its helper thread.
 *
 * The file lies in /dev/shm, where shm_open would put it. Its pages are allocated at once, so that
 * a full /dev/shm shows here and not as a SIGBUS in the job. No descriptor stays open: the program
 * may close all that it does not know.
 */
#include "interpose/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "interpose/clock.h"
#include "interpose/neighbours.h"
#include "interpose/observe.h"
#include "interpose/ranks.h"
#include "interpose/real_dl.h"
#include "interpose/shared_folder.h"

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static bool opened;
static struct bfc_segment_header *segment; /* or NULL; set once, under `opening` */
static const struct bfc_segment_services *services;
static char segment_path[96];

/* Counters of a process without a segment go here; a forked child has lost its parent's mapping. */
static struct bfc_segment_header unpublished;

struct bfc_segment_header *bfc_segment_published(void) {
    struct bfc_segment_header *published = __atomic_load_n(&segment, __ATOMIC_ACQUIRE);
    return published && bfc_process_if_made() ? published : NULL;
}

struct bfc_segment_header *bfc_segment_counters(void) {
    struct bfc_segment_header *published = bfc_segment_published();
    return published ? published : &unpublished;
}

/* ---- identity ---- */

static uint64_t read_start_time(void) {
    char text[1024];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    /* The name in field 2 may hold blanks and brackets: count fields after its last bracket. */
    const char *field = strrchr(text, ')');
    for (int i = 2; field && i < 22; i++) {
        field = strchr(field, ' ');
        field = field ? field + 1 : NULL;
    }
    return field ? strtoull(field, NULL, 10) : 0;
}

static void read_command(char *command, size_t size) {
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
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
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    header->version = BFC_SEGMENT_VERSION;
    header->header_size = sizeof *header;
    header->total_size = BFC_SEGMENT_SIZE;
    header->pool_size = sizeof(struct bfc_segment_pool);
    header->pool_count = BFC_SEGMENT_POOLS;
    header->pid = getpid();
    header->uid = getuid();
    header->pid_namespace = bfc_pid_namespace();
    header->start_time = read_start_time();
    header->created_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    read_command(header->command, sizeof header->command);
    snprintf(header->library, sizeof header->library, "%s", BFC_VERSION);
    fill_ranks(header);
    bfc_options_print(&process->options, header->configuration, sizeof header->configuration);
    header->configuration_errors = process->configuration_errors;
    memcpy(header->complaints, process->complaints, sizeof header->complaints);
}

/* ---- making it ---- */

/* A file of this name can only be ours from before an exec, or a dead process's: pids are unique.
 */
static int create_file(void) {
    snprintf(segment_path, sizeof segment_path, BFC_SHARED_FOLDER BFC_SEGMENT_NAME_FORMAT, getuid(),
             (unsigned long)bfc_pid_namespace(), getpid());
    unlink(segment_path);
    return open(segment_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static struct bfc_segment_header *map_segment(void) {
    bfc_neighbours_sweep(bfc_pid_namespace());
    int file = create_file();
    if (file < 0)
        return NULL;
    void *memory = MAP_FAILED;
    /* The mode as it should be, whatever the program's umask is. */
    if (fchmod(file, 0600) == 0 && posix_fallocate(file, 0, (off_t)BFC_SEGMENT_SIZE) == 0)
        memory = mmap(NULL, BFC_SEGMENT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED && madvise(memory, BFC_SEGMENT_SIZE, MADV_DONTFORK) != 0) {
        munmap(memory, BFC_SEGMENT_SIZE);
        memory = MAP_FAILED;
    }
    if (memory == MAP_FAILED) {
        unlink(segment_path);
        return NULL;
    }
    return memory;
}

/* ---- the helper thread ---- */

/* BFC_TRIM_IDLE, in nanoseconds; UINT64_MAX: none. Set before the helper starts. */
static uint64_t trim_idle_ns = UINT64_MAX;

/* Four looks in the time after which a region goes back, but neither many nor few. */
#define FEWEST_NS_A_LOOK ((uint64_t)10 * 1000 * 1000)
#define MOST_NS_A_LOOK ((uint64_t)10 * 1000 * 1000 * 1000)

static uint64_t ns_a_look(void) {
    uint64_t quarter = trim_idle_ns / 4;
    quarter = quarter > FEWEST_NS_A_LOOK ? quarter : FEWEST_NS_A_LOOK;
    return quarter < MOST_NS_A_LOOK ? quarter : MOST_NS_A_LOOK;
}

/* With idle regions to look for: for one look's time at most. */
static void futex_wait(uint32_t *word, uint32_t expected) {
    struct timespec time = {.tv_sec = (time_t)(ns_a_look() / 1000000000u),
                            .tv_nsec = (long)(ns_a_look() % 1000000000u)};
    bool looks = trim_idle_ns != UINT64_MAX;
    syscall(SYS_futex, word, FUTEX_WAIT, expected, looks ? &time : NULL, NULL, 0);
}

static void trim_idle(void) {
    static uint64_t next_ns;
    uint64_t now = bfc_now_ns();
    if (trim_idle_ns == UINT64_MAX || now < next_ns)
        return;
    services->trim_idle(trim_idle_ns);
    next_ns = now + ns_a_look() / 2;
}

/*
 * `owner` is a futex on this thread's robust list, set up by hand, since a mutex of the C library's
 * own layout has no place in a published one: the kernel marks it when this thread, and so the
 * process, is gone.
 */
static struct {
    struct robust_list_head head;
    struct robust_list entry;
} robust;

static void own_segment(struct bfc_segment_header *published) {
    robust.head.list.next = &robust.entry;
    robust.entry.next = &robust.head.list;
    robust.head.futex_offset = (long)((char *)&published->owner - (char *)&robust.entry);
    if (syscall(SYS_set_robust_list, &robust.head, sizeof robust.head) == 0)
        __atomic_store_n(&published->owner, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

/*
 * The first look of a reader is answered at once. Those who look without pause get the last
 * picture, so that refreshing takes at most a hundredth of one processor.
 */
static void serve_refresh(struct bfc_segment_header *published) {
    static uint32_t served;
    static uint64_t next_ns;
    uint32_t asked = __atomic_load_n(&published->refresh_asked, __ATOMIC_ACQUIRE);
    uint64_t now = bfc_now_ns();
    if (asked == served)
        return;
    served = asked;
    if (now < next_ns)
        return;
    services->refresh();
    uint64_t end = bfc_now_ns();
    next_ns = end + 100 * (end - now);
}

static void serve_trim(struct bfc_segment_header *published) {
    uint64_t wanted = __atomic_exchange_n(&published->request_bytes, 0, __ATOMIC_ACQ_REL);
    if (!wanted)
        return;
    uint64_t released = services->trim(wanted);
    __atomic_fetch_add(&published->released_bytes, released, __ATOMIC_RELAXED);
    bfc_observe_landmark(NULL, BFC_EVENT_TRIM, wanted, released);
}

static void serve_requests(struct bfc_segment_header *published) {
    uint32_t seen = __atomic_load_n(&published->request, __ATOMIC_ACQUIRE);
    if (seen == published->request_served) {
        futex_wait(&published->request, seen);
        return;
    }
    serve_trim(published);
    serve_refresh(published);
    __atomic_store_n(&published->request_served, seen, __ATOMIC_RELEASE);
}

static void *run_helper(void *argument) {
    struct bfc_segment_header *published = argument;
    own_segment(published);
    for (;;) {
        serve_requests(published);
        trim_idle();
    }
    return NULL;
}

/*
 * These two are in libpthread before glibc 2.34; it is loaded where there is a driver, which needs
 * it. A small stack is only a kindness.
 */
static bool create_thread(pthread_attr_t *attributes, void *argument) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*set_stack_size)(pthread_attr_t *, size_t);
    pthread_t thread;
    *(void **)&create = bfc_bound_function("pthread_create");
    *(void **)&set_stack_size = bfc_bound_function("pthread_attr_setstacksize");
    bfc_forget_dl_error();
    if (set_stack_size)
        set_stack_size(attributes, 256 * 1024);
    return create && create(&thread, attributes, run_helper, argument) == 0;
}

/* All signals blocked: the program's handlers must not run here. (In Linux sigprocmask is the
 * calling thread's; pthread_sigmask would need glibc 2.32.) */
static void start_helper(struct bfc_segment_header *published) {
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (!create_thread(&attributes, published))
        bfc_log(BFC_LOG_WARN, "no helper thread: requests to give memory back go unanswered");
    pthread_attr_destroy(&attributes);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* What was counted before there was a segment. */
static void adopt_counts(struct bfc_segment_header *published) {
    memcpy(published->forwarded_allocations, unpublished.forwarded_allocations,
           sizeof published->forwarded_allocations);
    memcpy(published->forwarded_frees, unpublished.forwarded_frees,
           sizeof published->forwarded_frees);
    memcpy(published->bypassed_calls, unpublished.bypassed_calls, sizeof published->bypassed_calls);
    memcpy(published->bypassed_bytes, unpublished.bypassed_bytes, sizeof published->bypassed_bytes);
}

void bfc_segment_open(const struct bfc_process *process,
                      const struct bfc_segment_services *offered) {
    if (__atomic_load_n(&opened, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&opening);
    if (!opened && process->options.stats) {
        struct bfc_segment_header *published = map_segment();
        if (published) {
            fill_identity(published, process);
            adopt_counts(published);
            services = offered;
            if (process->options.trim_idle >= 0)
                trim_idle_ns = (uint64_t)(process->options.trim_idle * 1e9);
            __atomic_store_n(&published->magic, BFC_SEGMENT_MAGIC, __ATOMIC_RELEASE);
            __atomic_store_n(&segment, published, __ATOMIC_RELEASE);
            start_helper(published);
        } else {
            bfc_log(BFC_LOG_WARN, "no segment: %s in " BFC_SHARED_FOLDER, strerror(errno));
        }
    }
    __atomic_store_n(&opened, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&opening);
}

/* A forked child has neither the mapping nor the right: the name is its parent's. */
__attribute__((destructor)) static void remove_segment(void) {
    if (bfc_process_if_made() && __atomic_load_n(&segment, __ATOMIC_ACQUIRE))
        unlink(segment_path);
}

/* ---- sections and counters ---- */

static struct bfc_segment_pool *sections(void) {
    struct bfc_segment_header *published = __atomic_load_n(&segment, __ATOMIC_ACQUIRE);
    return published ? (struct bfc_segment_pool *)((char *)published + BFC_SEGMENT_POOLS_OFFSET)
                     : NULL;
}

/* Guarded by the callers' lock: sections that a domain, ended or not, still writes to. */
static bool taken[BFC_SEGMENT_POOLS];

unsigned bfc_segment_section_index(const struct bfc_segment_pool *section) {
    return (unsigned)(section - sections());
}

/* The counts of a section's former pool stay in the process's totals. */
static void retire_counts(struct bfc_segment_pool *section) {
    __atomic_fetch_add(&bfc_segment_counters()->pooled_allocations, section->stats.allocations,
                       __ATOMIC_RELAXED);
    __atomic_fetch_add(&bfc_segment_counters()->pooled_frees, section->stats.frees,
                       __ATOMIC_RELAXED);
}

static struct bfc_segment_pool *take_section_in_state(enum bfc_pool_state state) {
    struct bfc_segment_pool *all = sections();
    for (unsigned i = 0; all && i < BFC_SEGMENT_POOLS; i++)
        if (!taken[i] && all[i].state == (uint64_t)state) {
            taken[i] = true;
            return &all[i];
        }
    return NULL;
}

struct bfc_segment_pool *bfc_segment_take_section(void) {
    struct bfc_segment_pool *section = take_section_in_state(BFC_POOL_UNUSED);
    if (!section && (section = take_section_in_state(BFC_POOL_ENDED)))
        retire_counts(section);
    return section;
}

void bfc_segment_return_section(struct bfc_segment_pool *section) {
    taken[section - sections()] = false;
}

void bfc_count_forwarded_allocation(enum bfc_forward_reason reason) {
    __atomic_fetch_add(&bfc_segment_counters()->forwarded_allocations[reason], 1, __ATOMIC_RELAXED);
}

void bfc_count_forwarded_free(enum bfc_forward_reason reason) {
    __atomic_fetch_add(&bfc_segment_counters()->forwarded_frees[reason], 1, __ATOMIC_RELAXED);
}

void bfc_count_bypassed(enum bfc_bypass_kind kind, uint64_t bytes) {
    __atomic_fetch_add(&bfc_segment_counters()->bypassed_calls[kind], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&bfc_segment_counters()->bypassed_bytes[kind], bytes, __ATOMIC_RELAXED);
}

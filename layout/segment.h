/*
 * The shared-memory segment that a job publishes: its layout, for the job and for readers alike.
 *
 * Each process has one segment, in POSIX shared memory under the name that BFC_SEGMENT_NAME_FORMAT
 * gives, with mode 0600. It is made at the first CUDA allocation that is seen. Only the job writes
 * to it, except for the request words and what other jobs write for waiters. A reader must treat
 * each value as untrusted, and compares the header's sizes and counts with the constants below
 * before it reads anything else. docs/internals/segment.md is the specification in words.
 *
 *   offset 0                       struct bfc_segment_header
 *   BFC_SEGMENT_POOLS_OFFSET       struct bfc_segment_pool [BFC_SEGMENT_POOLS]
 *   BFC_SEGMENT_MAP_OFFSET         struct bfc_map
 *   BFC_SEGMENT_LANDMARKS_OFFSET   struct bfc_event [BFC_LANDMARKS]
 *   BFC_SEGMENT_EVENTS_OFFSET      struct bfc_event [BFC_EVENTS]
 *
 * Consistency: identity and configuration are complete before `magic` is written, and then
 * constant. A pool's counters carry their own sequence number (pool/stats.h), and so do the map and
 * each event. Process-wide counters and the histograms are single 64-bit words, each right by
 * itself.
 *
 * Liveness: `owner` is a robust futex held by the job's helper thread for as long as the process
 * lives; the kernel sets FUTEX_OWNER_DIED in it when the process ends, however it ends. Without a
 * helper thread `owner` is 0; then the pid and the start time show whether the process lives, but
 * only in the same pid namespace.
 */
#ifndef BFC_LAYOUT_SEGMENT_H
#define BFC_LAYOUT_SEGMENT_H

#include <stdint.h>

#include "pool/stats.h"

/* "BFCSEG" and a byte order tag: a segment of the other byte order does not match. */
#define BFC_SEGMENT_MAGIC UINT64_C(0x0102474553434642)
#define BFC_SEGMENT_VERSION 12u

/* Format of the name for shm_open: user id, pid namespace (inode number), pid in that namespace. */
#define BFC_SEGMENT_NAME_FORMAT "/bfcpreload.%u.%lu.%d"
#define BFC_SEGMENT_NAME_PREFIX "bfcpreload."

/* Names of files that a job writes beside its segment when a reader asks: the kind of the file, and
 * then the numbers of BFC_SEGMENT_NAME_FORMAT. */
#define BFC_ANSWER_NAME_FORMAT "bfcpreload-%s.%u.%lu.%d"
#define BFC_WHO_ANSWER "who"   /* layout/who.h */
#define BFC_PLAN_ANSWER "plan" /* plan files (layout/plan.h), one after the other */

#define BFC_SEGMENT_POOLS 32u

enum bfc_pool_state {
    BFC_POOL_UNUSED = 0,
    BFC_POOL_ACTIVE = 1,
    BFC_POOL_ENDED = 2, /* its context has ended; the counters stay as they were */
};

/* The kind of memory that a pool's blocks are. */
enum bfc_memory {
    BFC_MEMORY_DEVICE = 0,
    BFC_MEMORY_HOST = 1, /* host memory that the device reaches (BFC_SPILL) */
};

/* Why a hook passed an allocation or free to the driver. */
enum bfc_forward_reason {
    /* the process is disabled by a variable, is a forked child, or is exiting */
    BFC_FORWARD_DISABLED,
    BFC_FORWARD_NO_CONTEXT, /* no context is current, so the driver answers */
    BFC_FORWARD_OLD_DRIVER, /* the driver lacks a call that pooling needs */
    BFC_FORWARD_FOREIGN,    /* a free of an address that is in no pool */
    /* arguments that only the driver can answer, such as NULL or a size of zero */
    BFC_FORWARD_BAD_CALL,
    BFC_FORWARD_NO_HOST_MEMORY,
    /* the request is larger than the device, or the pool could not get the memory */
    BFC_FORWARD_TOO_LARGE,
    BFC_FORWARD_CAPTURE,  /* a stream capture forbids the call, so the driver answers */
    BFC_FORWARD_EXPORTS,  /* BFC_IPC=off is set, and the process has exported a block */
    BFC_FORWARD_BYPASSED, /* the request is larger than BFC_BYPASS_ABOVE */
    BFC_FORWARD_NO_PAGES, /* with BFC_BACKING=pages: the driver refused to map a page */
    BFC_FORWARD_REFUSED,  /* a free of an address that is in no pool, and that the driver refused */
    BFC_FORWARD_REASONS = 16,
};

/* Allocations that never pass through the pool, by kind. */
enum bfc_bypass_kind {
    BFC_BYPASS_ASYNC,
    BFC_BYPASS_MANAGED,
    BFC_BYPASS_VMM,
    BFC_BYPASS_ARRAY,
    BFC_BYPASS_PITCH,
    BFC_BYPASS_V1,
    BFC_BYPASS_HOST,
    BFC_BYPASS_UNKNOWN_ENTRY, /* an allocator entry point that was recognised by neither name nor
                                 pointer */
    BFC_BYPASS_KINDS = 16,
};

/*
 * Requested sizes: bin b counts requests above 2^(b-1) and up to 2^b bytes; the last bin also
 * counts all larger ones.
 */
#define BFC_SIZE_BINS 48u

/*
 * Counters that change at every call. Each thread has a lane of its own while there are enough (all
 * further threads share the last one); a count is the sum over the lanes.
 */
#define BFC_LANES 8u

struct bfc_lane {
    uint64_t host_waits;   /* how often frees have waited on the host for a context's work */
    uint64_t fences;       /* events that were recorded for frees */
    uint64_t device_waits; /* how often a context was made to wait on the device for fences */
    uint64_t sizes[BFC_SIZE_BINS];
};

static inline unsigned bfc_size_bin(uint64_t bytes) {
    unsigned bin = bytes <= 1 ? 0 : 64u - (unsigned)__builtin_clzll(bytes - 1);
    return bin < BFC_SIZE_BINS ? bin : BFC_SIZE_BINS - 1;
}

/*
 * Latencies of calls in nanoseconds, four bins an octave: bin_start(b) <= latency < bin_start(b +
 * 1); the last bin counts all longer ones too. Of each thread's first BFC_LATENCY_CLOSELY calls one
 * in BFC_LATENCY_SAMPLING is timed; then one in about BFC_LATENCY_WEIGHT times as many, which
 * counts BFC_LATENCY_WEIGHT times.
 */
#define BFC_LATENCY_BINS 128u
#define BFC_LATENCY_SAMPLING 61u
#define BFC_LATENCY_CLOSELY 4096u
#define BFC_LATENCY_WEIGHT 4u

static inline unsigned bfc_latency_bin(uint64_t ns) {
    if (ns < 4)
        return (unsigned)ns;
    unsigned octave = 63u - (unsigned)__builtin_clzll(ns);
    unsigned bin = (octave - 1) * 4 + (unsigned)(ns >> (octave - 2) & 3);
    return bin < BFC_LATENCY_BINS ? bin : BFC_LATENCY_BINS - 1;
}

/* Returns the shortest latency of a bin, in nanoseconds. */
static inline uint64_t bfc_latency_bin_start(unsigned bin) {
    return bin < 4 ? bin : (uint64_t)(4 + bin % 4) << (bin / 4 - 1);
}

/* The last resorts, in the order in which an allocation tries them before it fails. The first is a
 * part of the pool, and counted in the pool's counters (pool/stats.h). */
enum bfc_rung {
    BFC_RUNG_POOL,     /* the pool of the allocation: waits for fences, gives idle regions back */
    BFC_RUNG_CONTEXTS, /* the process's other contexts on the device */
    BFC_RUNG_JOBS,     /* what other jobs cache */
    BFC_RUNG_SLEEP,    /* other jobs that may sleep: all that they have */
    BFC_RUNG_WAIT,     /* BFC_WAIT: what other jobs use */
    BFC_RUNG_SPILL,    /* BFC_SPILL: host memory */
    BFC_RUNGS = 8,     /* the size of arrays, with room for more */
};

struct bfc_rung_counts {
    uint64_t climbed; /* how often allocations have tried this last resort */
    uint64_t saved;   /* how often this last resort got an allocation its memory */
    uint64_t ns;      /* nanoseconds spent on this last resort */
};

/*
 * A thread that waits for memory which other jobs use (BFC_WAIT). The waiters for one device, in
 * all jobs of the user, form one queue, in the order of `since_ns`. A waiter that has not examined
 * the queue for BFC_WAITER_LOST_NS is stopped, and the others pass it over. A thread that frees
 * memory, or leaves the queue, adds 1 to `wake` and wakes that futex. All times are the kernel's
 * CLOCK_MONOTONIC.
 */
#define BFC_WAITERS 8u
#define BFC_WAITER_LOST_NS UINT64_C(2000000000)

struct bfc_waiter {
    uint64_t bytes; /* bytes that the thread waits for; 0: no thread waits here */
    uint64_t since_ns;
    uint64_t seen_ns; /* when the waiter last examined the queue */
    uint32_t wake;
    uint32_t pool;     /* index of the section of the pool that the thread waits for */
    uint32_t position; /* the waiter's place in the queue at `seen_ns`, from 1 */
    /* What the driver adds by rounding up what the waiter's process has reserved on the device, in
     * units of 4 KiB. */
    uint32_t rounded_4k;
};

/*
 * The memory that the first waiter of the queue, in another job, hopes for, and that this job may
 * free. The waiter writes it into each section of this job on the device, renews it, and wakes the
 * helper thread as for a request.
 */
struct bfc_awaited {
    uint64_t until_ns; /* when the announcement ends; 0: no other job waits */
    uint64_t turn_ns;  /* when the waiter became the first of the queue */
    uint64_t bytes;    /* bytes that the waiter asked for */
    /* Bytes that this job would have to give, if all other jobs gave what they only cache, for the
     * waiter to be served. All ones: this job gives nothing. */
    uint64_t from_here;
};

/*
 * With BFC_BACKING=pages: the memory behind a pool's addresses, in bytes; otherwise all 0. A page
 * moves each time that it is mapped, except the first time. The pages that were created and not
 * released back a part of `addresses`, and the rest is bare. `reserved` of the pool's counters also
 * includes plain regions, which took the place of pages that failed. Each word is right by itself.
 */
struct bfc_segment_pages {
    uint64_t addresses; /* bytes of addresses that are reserved now */
    uint64_t created;   /* bytes of all pages ever created */
    uint64_t mapped;    /* bytes of all pages ever mapped, counted again each time */
    uint64_t released;  /* bytes of all pages ever released */
    uint64_t calls;     /* a count: calls of the driver's virtual memory management */
    uint64_t ready;  /* bytes in pages without a byte in use, pending or deferred, at `looked_ns` */
    uint64_t pinned; /* bytes in pages that were shown to others and so stay in place, as of
                        `looked_ns` */
    uint64_t looked_ns; /* when the map was last refreshed: CLOCK_REALTIME; 0: never */
    uint64_t
        asleep; /* bytes of pages that are asleep: released, and counted as reserved by the pool */
};

/* Returns the bytes of all pages that exist. */
static inline uint64_t bfc_pages_backed(const struct bfc_segment_pages *pages) {
    return pages->created > pages->released ? pages->created - pages->released : 0;
}

/* Returns how many bytes were mapped again, after their first time. */
static inline uint64_t bfc_pages_moved(const struct bfc_segment_pages *pages) {
    return pages->mapped > pages->created ? pages->mapped - pages->created : 0;
}

/*
 * Fragmentation, measured when the map is refreshed: how much of the ready memory lies in free
 * blocks too small for the largest allocation among the last BFC_EVENTS events. Each word is right
 * by itself. If there was no allocation among them, `request` stays as it was.
 */
struct bfc_segment_fit {
    uint64_t request;   /* bytes of that largest allocation; 0: not measured yet */
    uint64_t too_small; /* ready bytes in blocks that are too small for `request` */
};

enum bfc_plan_source {
    BFC_PLAN_NONE = 0,
    BFC_PLAN_OF_FILE = 1, /* BFC_PLAN=FILE */
    BFC_PLAN_OF_LOOP = 2, /* BFC_PLAN=auto: made in the job */
};

/* The plan that the pool's context follows, and how well. Each word is right by itself. Each
 * allocation counts as followed, unplanned or missed. */
struct bfc_segment_plan {
    uint64_t source; /* enum bfc_plan_source; all other fields are of the last plan, or 0 */
    uint64_t prefix; /* a count: planned allocations before the first period, on this device */
    uint64_t period; /* a count: planned allocations in one period; 0: the plan holds a whole run */
    uint64_t periods;    /* a count: how many periods of the plan the job has gone through */
    uint64_t bound;      /* bytes: no plan for the device needs less */
    uint64_t peak;       /* bytes that this plan needs */
    uint64_t memory;     /* bytes that are reserved for the plan now; 0: none */
    uint64_t followed;   /* a count: served at their planned addresses */
    uint64_t unplanned;  /* a count: in the plan without an address, since they live too long */
    uint64_t missed;     /* a count: all other allocations */
    uint64_t busy;       /* a count: missed allocations whose planned place was not free */
    uint64_t resumed;    /* a count: the job left out a part of the plan, or came back to it */
    uint64_t lost;       /* a count: the plan was given up until its period begins again */
    uint64_t divergence; /* number, from 0, of the planned allocation in place of which another came
                            last */
    uint64_t expected;   /* bytes of that planned allocation, rounded */
    uint64_t came;       /* bytes of the allocation that came instead, rounded; 0: none came */
    uint64_t diverged_ns; /* when that was: CLOCK_REALTIME */
    uint64_t before;      /* bytes that the pool alone had reserved when it first asked for memory
                             for a plan that was made in the job; 0: it never did */
};

struct bfc_segment_pool {
    uint64_t state;      /* enum bfc_pool_state */
    uint64_t memory;     /* enum bfc_memory */
    int64_t device;      /* ordinal of the device, as the process numbers its devices */
    uint64_t context_id; /* the id from cuCtxGetId; where the driver lacks that call, a number that
                            the library chose */
    uint64_t device_total;   /* bytes of the device; for host memory: BFC_SPILL */
    uint8_t device_uuid[16]; /* zero for host memory */
    char device_name[64];    /* NUL-terminated */
    char device_bus_id[24];  /* the device's PCI address, "0000:3B:00.0", NUL-terminated; empty:
                                the driver does not tell it */
    /* Bytes free on the device when the job last asked the driver (as it does when it grows). */
    uint64_t device_free;
    uint64_t device_free_ns; /* when the job asked for `device_free`: CLOCK_REALTIME; 0: never */
    uint64_t host_waits; /* how often frees have waited on the host for a context's work; add the
                            counts of the lanes */
    uint64_t host_wait_ns;
    /* in the job's own segment always 0: the counts are those of the lanes, added up */
    uint64_t fences, device_waits;
    struct bfc_pool_stats stats;
    struct bfc_rung_counts rungs[BFC_RUNGS]; /* the counts of BFC_RUNG_POOL stay 0 */
    struct bfc_lane lanes[BFC_LANES];
    uint64_t allocate_latency[BFC_LATENCY_BINS];
    uint64_t free_latency[BFC_LATENCY_BINS];
    uint64_t
        host_wait_latency[BFC_LATENCY_BINS]; /* durations of the waits that `host_waits` counts */
    struct bfc_segment_pages pages;
    struct bfc_segment_fit fit;
    struct bfc_segment_plan plan;
    struct bfc_awaited awaited; /* written by other jobs */
};

/* Returns how often frees of the section's pool have waited on the host. */
static inline uint64_t bfc_host_waits(const struct bfc_segment_pool *section) {
    uint64_t waits = section->host_waits;
    for (unsigned lane = 0; lane < BFC_LANES; lane++)
        waits += section->lanes[lane].host_waits;
    return waits;
}

/* In a copy of a section, adds the counts of the lanes to those of the section itself. */
static inline void bfc_sum_lanes(struct bfc_segment_pool *copy) {
    copy->host_waits = bfc_host_waits(copy);
    for (unsigned lane = 0; lane < BFC_LANES; lane++) {
        copy->fences += copy->lanes[lane].fences;
        copy->device_waits += copy->lanes[lane].device_waits;
    }
}

/*
 * The map: one row for each region, each pool's in address order. The helper thread refreshes it
 * when a reader requests that (refresh_asked), never otherwise. `sequence` is odd while it is
 * written. Each cell of a row covers `cell_bytes` bytes, and the last cell the rest of the row. The
 * high nibble of a cell is the share in use, its low nibble the share that is pending or deferred,
 * in fifteenths, rounded up; the rest is ready. BFC_MAP_BARE: no page is behind any byte of the
 * cell. With pages, a row ends where the region's last page ends.
 */
#define BFC_MAP_ROWS 256u
#define BFC_MAP_CELLS 128u
#define BFC_MAP_BARE 0xffu

struct bfc_map_row {
    uint64_t start, size; /* the region, in bytes */
    uint64_t pool;        /* index of the pool's section */
    uint64_t cell_bytes;
    uint8_t cells[BFC_MAP_CELLS];
};

struct bfc_map {
    uint64_t sequence;
    uint64_t rows;         /* rows in use, at most BFC_MAP_ROWS */
    uint64_t left_out;     /* regions for which there was no row */
    uint64_t refreshed_ns; /* CLOCK_REALTIME; 0: never */
    struct bfc_map_row row[BFC_MAP_ROWS];
};

/*
 * Two rings: `events` holds the last BFC_EVENTS events of every kind, `landmarks` the last
 * BFC_LANDMARKS of those that are neither an allocation nor a free, which would soon be overwritten
 * in the former. Event number n (from 0) stands in slot n modulo the ring's size, its `stamp` is n
 * + 1, or 0 while it is written; a slot whose stamp is of an earlier round was left empty, since
 * threads take numbers in batches. `what` is, from the lowest bit: kind (6 bits), index of the
 * pool's section (6 bits), microseconds since `created_ns` (52 bits). An allocation or free has the
 * time of the thread's last reading of the clock, at most 8 of its events earlier.
 */
#define BFC_EVENTS 4096u
#define BFC_LANDMARKS 256u
#define BFC_EVENT_BATCH 8u

enum bfc_event_kind {
    BFC_EVENT_NONE,
    BFC_EVENT_ALLOCATE,      /* address of the block, and bytes that the program asked for */
    BFC_EVENT_FREE,          /* address of the freed block; `bytes` is 0 */
    BFC_EVENT_GROW,          /* a region, or a step of pages, was taken: address, bytes */
    BFC_EVENT_REFUSED,       /* the pool could not grow by so many bytes */
    BFC_EVENT_RELEASE,       /* a region went back to the device: address, bytes */
    BFC_EVENT_OUT_OF_MEMORY, /* an allocation of so many bytes failed */
    BFC_EVENT_TRIM, /* memory was given back on request; address: bytes requested; bytes: given
                       back; pool 63: all pools */
    BFC_EVENT_INVALID_FREE, /* an address was freed that is no live block's start */
    BFC_EVENT_BEGIN,        /* a pool began, with its context */
    BFC_EVENT_END,          /* a pool ended, with its context */
    /* A last resort served an allocation, or the allocation had waited; address: nanoseconds that
     * it took; bytes: asked for. */
    BFC_EVENT_SAVED_CONTEXTS,
    BFC_EVENT_SAVED_JOBS,
    BFC_EVENT_WAITED,
    BFC_EVENT_SPILLED,
    BFC_EVENT_PLAN_FOLLOWED, /* memory was taken for a plan: address, bytes */
    BFC_EVENT_PLAN_LOST, /* the allocations do not follow the plan any more; bytes: of the last one,
                            rounded */
    BFC_EVENT_PAGES_LEFT,  /* with BFC_BACKING=auto: the pool grows by regions from now on */
    BFC_EVENT_SAVED_SLEEP, /* as BFC_EVENT_SAVED_JOBS */
    BFC_EVENT_ASLEEP,      /* the pool fell asleep: nanoseconds that it took, bytes given back */
    BFC_EVENT_AWAKE,       /* the pool woke: nanoseconds that it took, bytes taken */
    BFC_EVENT_KINDS = 64,
};

struct bfc_event {
    uint64_t stamp;
    uint64_t what;
    uint64_t address;
    uint64_t bytes;
};

static inline uint64_t bfc_event_what(enum bfc_event_kind kind, unsigned pool, uint64_t us) {
    return us << 12 | (uint64_t)(pool & 63) << 6 | (uint64_t)kind;
}
static inline enum bfc_event_kind bfc_event_kind_of(uint64_t what) {
    return (enum bfc_event_kind)(what & 63);
}
static inline unsigned bfc_event_pool(uint64_t what) {
    return (unsigned)(what >> 6 & 63);
}
static inline uint64_t bfc_event_us(uint64_t what) {
    return what >> 12;
}

/* Whether the calls that submit work are counted (BFC_GATE). */
enum bfc_gate_state {
    BFC_GATE_NOT_USED = 0,
    BFC_GATE_COUNTS = 1,
    /* calls may submit work unseen, so submissions are not counted any more; `why` has the
     * reason */
    BFC_GATE_GIVEN_UP = 2,
};

/* To how many streams work goes at present, as far as that matters for frees. Streams of a number
 * below BFC_STREAMS_SEVERAL are ordered with each other, so that frees need no fences. */
enum bfc_gate_streams {
    BFC_STREAMS_NONE = 0, /* to none since the beginning, or since all work was complete */
    BFC_STREAMS_ONE = 1,
    /* to the legacy stream and one blocking stream, which wait for each other */
    BFC_STREAMS_ORDERED = 2,
    BFC_STREAMS_SEVERAL = 3,
};

struct bfc_segment_gate {
    uint64_t state; /* enum bfc_gate_state */
    /* a value of enum bfc_gate_streams; only valid in the state BFC_GATE_COUNTS */
    uint64_t streams;
    /* a count: streams that had work; at most 1,024, and streams that had the same handle one after
     * the other count as one */
    uint64_t seen;
    uint64_t left;   /* a count: how often work went to further streams after it had gone to one */
    uint64_t checks; /* a count: checks by samples that nothing is submitted unseen */
    /* why the state is BFC_GATE_GIVEN_UP; NUL-terminated, and written before that state */
    char why[96];
};

enum bfc_sleep_state {
    BFC_SLEEP_AWAKE = 0,
    BFC_SLEEP_FALLING = 1, /* falling asleep: what the job submits makes it stay awake */
    BFC_SLEEP_ASLEEP = 2,
    BFC_SLEEP_WAKING = 3,
};

/*
 * What a job tells of its sleep. A client that wants the job to fall asleep adds 1 to `asked`, one
 * that wants it to wake adds 1 to wake_asked; then it makes a request as for the map. A job that
 * lacks memory adds 1 to `begged` instead of `asked`: then the settings of the job that it asks
 * decide. The job has answered when `answered` is the sum of the three words, as they were then or
 * later: `state` is then the result, and `why` the reason if it is not what was asked for.
 */
struct bfc_segment_sleep {
    uint64_t state;        /* enum bfc_sleep_state */
    uint64_t since_ns;     /* when the state began: CLOCK_REALTIME */
    uint64_t active_ns;    /* when the job was last seen to submit work, as far as it is watched:
                              CLOCK_MONOTONIC; 0: never */
    uint64_t woke_ns;      /* when it last woke: CLOCK_MONOTONIC; 0: never */
    uint64_t falls, wakes; /* counts */
    uint64_t fall_ns, wake_ns; /* nanoseconds of the last ones */
    uint64_t refused;          /* a count: wakes that found the device full */
    uint64_t kept;             /* bytes of the pools that stayed on the device */
    uint32_t asked, begged, wake_asked, answered;
    char where[256]; /* where the contents are: memory, or a folder; NUL-terminated */
    char why[112];   /* why the job did not fall asleep, or what stayed; NUL-terminated */
};

struct bfc_segment_header {
    uint64_t magic; /* written last, after the constant part of the header */
    uint32_t version;
    uint32_t header_size; /* sizeof(struct bfc_segment_header) */
    uint64_t total_size;  /* bytes, of the whole segment */
    uint32_t pool_size;   /* sizeof(struct bfc_segment_pool) */
    uint32_t pool_count;  /* BFC_SEGMENT_POOLS */

    /* Identity of the job. */
    int32_t pid; /* process id in the job's own pid namespace */
    uint32_t uid;
    uint64_t pid_namespace; /* inode number */
    uint64_t start_time;    /* in clock ticks after boot: field 22 of /proc/PID/stat */
    uint64_t created_ns;    /* when the segment was made: CLOCK_REALTIME */
    char command[256];      /* the arguments, joined by blanks, cut off, NUL-terminated */
    char library[32];       /* version of the preloaded library */
    char job[64];           /* the launcher's name of the job of which this is a rank, or empty */
    int32_t rank;           /* rank in that job; -1: not known to be one of several */
    int32_t local_rank;     /* rank on this machine, or -1 */
    int32_t ranks;          /* a count: ranks in that job, or -1 */

    /* Configuration in force, as NAME=value lines; and complaints about malformed variables. */
    uint32_t configuration_errors;
    char configuration[4096];
    char complaints[1024]; /* a line each, cut off */

    uint32_t owner; /* robust futex that shows whether the job lives, described at the file's top */

    /*
     * Requests: the words that readers write. A reader adds the bytes that should go back to the
     * device to request_bytes, or 1 to refresh_asked (to have largest_free and the map brought up
     * to date); then it adds 1 to `request` and wakes that futex. The request has been answered
     * when request_served has reached that value of `request`.
     */
    uint32_t request;
    uint32_t request_served;
    uint32_t refresh_asked;
    uint64_t request_bytes;
    uint64_t released_bytes; /* bytes given back on requests since the start */

    /* The numbers that the next events get. */
    uint64_t next_event;
    uint64_t next_landmark;

    /* Process-wide counters. */
    /* Counts of pools whose sections were given to later contexts; add the counts of the
     * sections. */
    uint64_t pooled_allocations;
    uint64_t pooled_frees;
    uint64_t forwarded_allocations[BFC_FORWARD_REASONS];
    uint64_t forwarded_frees[BFC_FORWARD_REASONS];
    uint64_t bypassed_calls[BFC_BYPASS_KINDS];
    uint64_t bypassed_bytes[BFC_BYPASS_KINDS];
    struct bfc_waiter waiters[BFC_WAITERS];
    /* A reader that wants the file of layout/who.h adds 1 to who_asked, and then makes a request as
     * for the map. The job sets who_written to that number when the file is written, or when there
     * is none to write. A reader that wants the blocks in it adds 1 to blocks_asked before.
     * plan_asked and plan_written serve in the same way for the plans that the job's contexts
     * follow, or followed last. */
    uint32_t who_asked;
    uint32_t who_written;
    uint32_t plan_asked;
    uint32_t plan_written;
    uint32_t blocks_asked;
    uint32_t zero;
    struct bfc_segment_gate gate;
    struct bfc_segment_sleep sleep;
    uint64_t reserved_for_growth[4]; /* zero */
};

#define BFC_SEGMENT_POOLS_OFFSET 8192u
#define BFC_SEGMENT_MAP_OFFSET                                                                     \
    (BFC_SEGMENT_POOLS_OFFSET + BFC_SEGMENT_POOLS * (uint64_t)sizeof(struct bfc_segment_pool))
#define BFC_SEGMENT_LANDMARKS_OFFSET                                                               \
    ((BFC_SEGMENT_MAP_OFFSET + (uint64_t)sizeof(struct bfc_map) + 63) / 64 * 64)
#define BFC_SEGMENT_EVENTS_OFFSET                                                                  \
    (BFC_SEGMENT_LANDMARKS_OFFSET + BFC_LANDMARKS * (uint64_t)sizeof(struct bfc_event))
#define BFC_SEGMENT_SIZE                                                                           \
    (BFC_SEGMENT_EVENTS_OFFSET + BFC_EVENTS * (uint64_t)sizeof(struct bfc_event))

/* Returns the sections of a segment that is mapped as a whole. */
static inline const struct bfc_segment_pool *
bfc_segment_sections_of(const struct bfc_segment_header *header) {
    return (const struct bfc_segment_pool *)(const void *)((const char *)header +
                                                           BFC_SEGMENT_POOLS_OFFSET);
}
static inline struct bfc_segment_pool *bfc_segment_sections(struct bfc_segment_header *header) {
    return (struct bfc_segment_pool *)(void *)((char *)header + BFC_SEGMENT_POOLS_OFFSET);
}

_Static_assert(sizeof(struct bfc_segment_pool) ==
                   40 + 16 + 64 + 24 + 32 + 16 + sizeof(struct bfc_pool_stats) + 72 + 16 + 32 +
                       144 +
                       8 * (3 * BFC_RUNGS + BFC_LANES * (3 + BFC_SIZE_BINS) + 3 * BFC_LATENCY_BINS),
               "no padding: other processes read this");
_Static_assert(sizeof(struct bfc_map_row) == 32 + BFC_MAP_CELLS, "no padding");
_Static_assert(sizeof(struct bfc_map) == 32 + BFC_MAP_ROWS * sizeof(struct bfc_map_row),
               "no padding");
_Static_assert(sizeof(struct bfc_waiter) == 40, "no padding");
_Static_assert(sizeof(struct bfc_awaited) == 32, "no padding");
_Static_assert(sizeof(struct bfc_segment_gate) == 136, "no padding");
_Static_assert(sizeof(struct bfc_segment_sleep) == 464, "no padding");
_Static_assert(sizeof(struct bfc_event) == 32, "two in a cache line");
_Static_assert(sizeof(struct bfc_segment_header) == 7104, "no padding");
_Static_assert(sizeof(struct bfc_segment_header) <= BFC_SEGMENT_POOLS_OFFSET,
               "the header fits before the pools");
_Static_assert(BFC_SEGMENT_EVENTS_OFFSET % 64 == 0, "events do not straddle cache lines");
_Static_assert(BFC_EVENTS % BFC_EVENT_BATCH == 0, "a batch does not wrap around");
_Static_assert(BFC_SEGMENT_POOLS <= 63, "an event's pool has 6 bits");

#endif

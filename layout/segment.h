/*
 * The layout of the shared-memory segment in which a job (a process with this library) publishes
 * its counters and events, and in which other processes make requests to it.
 *
 * Each job has one segment in POSIX shared memory, under the name that BFC_SEGMENT_NAME_FORMAT
 * gives, with mode 0600. It is made at the process's first CUDA allocation. Other processes write
 * only the words by which they make requests, the `wake` of waiting threads, and `awaited`. A
 * reader must treat each value as untrusted, and compares the header's sizes and counts with the
 * constants below before it reads anything else. docs/internals/segment.md is the specification in
 * words.
 *
 *   offset 0                       struct bfc_segment_header
 *   BFC_SEGMENT_POOLS_OFFSET       struct bfc_segment_pool [BFC_SEGMENT_POOLS], the "sections"
 *   BFC_SEGMENT_MAP_OFFSET         struct bfc_map
 *   BFC_SEGMENT_LANDMARKS_OFFSET   struct bfc_event [BFC_LANDMARKS]
 *   BFC_SEGMENT_EVENTS_OFFSET      struct bfc_event [BFC_EVENTS]
 *
 * Consistency: the job's identity and configuration are complete before `magic` is written, and do
 * not change afterwards. The counters of a pool (pool/stats.h), the map and each event have a
 * sequence number by which a reader sees whether it copied them while they changed. All other
 * counters are atomic 64-bit words, but a reader may see them from different times.
 *
 * Liveness: `owner` is a robust futex that the job's helper thread holds as long as the process
 * lives. When the process ends, in whatever way, the kernel sets FUTEX_OWNER_DIED in `owner`. In a
 * job without a helper thread `owner` is 0. Then the process id and the start time show whether the
 * process lives, but only to a reader in the same pid namespace.
 */
#ifndef BFC_LAYOUT_SEGMENT_H
#define BFC_LAYOUT_SEGMENT_H

#include <stdint.h>

#include "pool/stats.h"

/* The characters "BFCSEG", 2 and 1. In a segment of the other byte order the number differs, so a
 * reader refuses the segment. */
#define BFC_SEGMENT_MAGIC UINT64_C(0x0102474553434642)
#define BFC_SEGMENT_VERSION 12u

/* Format of the segment's name for shm_open. Its numbers are the job's user id, the inode number of
 * its pid namespace, and its process id in that namespace. */
#define BFC_SEGMENT_NAME_FORMAT "/bfcpreload.%u.%lu.%d"
#define BFC_SEGMENT_NAME_PREFIX "bfcpreload."

/* Format of the name of a file that a job writes into the segment's folder when another process
 * requests it. %s is BFC_WHO_ANSWER or BFC_PLAN_ANSWER; the numbers are those of
 * BFC_SEGMENT_NAME_FORMAT. */
#define BFC_ANSWER_NAME_FORMAT "bfcpreload-%s.%u.%lu.%d"
#define BFC_WHO_ANSWER "who" /* the file says which code holds the memory (layout/who.h) */
/* the file consists of plan files (layout/plan.h), one after the other */
#define BFC_PLAN_ANSWER "plan"

#define BFC_SEGMENT_POOLS 32u

enum bfc_pool_state {
    BFC_POOL_UNUSED = 0,
    BFC_POOL_ACTIVE = 1,
    BFC_POOL_ENDED = 2, /* the pool's context has ended; the counters keep their last values */
};

/* Where the memory of a pool's blocks is. */
enum bfc_memory {
    BFC_MEMORY_DEVICE = 0,
    BFC_MEMORY_HOST = 1, /* in host memory that the device can access (BFC_SPILL) */
};

/* Why a hook passed an allocation or a free to the driver in place of the pool. */
enum bfc_forward_reason {
    /* a variable disables the library in this process, or the process is a forked child or is
     * exiting */
    BFC_FORWARD_DISABLED,
    BFC_FORWARD_NO_CONTEXT, /* no context is current, so the driver is called to return its error */
    BFC_FORWARD_OLD_DRIVER, /* the driver lacks a function that the pool needs */
    BFC_FORWARD_FOREIGN,    /* a free of an address that belongs to no pool */
    /* the arguments are such, for instance NULL or a size of zero, that only the driver can tell
     * the right result */
    BFC_FORWARD_BAD_CALL,
    BFC_FORWARD_NO_HOST_MEMORY,
    /* the request is larger than the device's memory, or the pool could not get so much memory */
    BFC_FORWARD_TOO_LARGE,
    /* the calling thread may not allocate or free during a stream capture, so the driver is called
     * to return its error */
    BFC_FORWARD_CAPTURE,
    /* BFC_IPC=off is set and the process has exported a block, so the pool serves no more
     * requests */
    BFC_FORWARD_EXPORTS,
    BFC_FORWARD_BYPASSED, /* the request is larger than BFC_BYPASS_ABOVE */
    BFC_FORWARD_NO_PAGES, /* BFC_BACKING=pages is set, and the driver refused to map a page */
    /* a free of an address that belongs to no pool, and that the driver refused as well */
    BFC_FORWARD_REFUSED,
    BFC_FORWARD_REASONS = 16,
};

/* Ways of allocating that the library never serves from the pool. */
enum bfc_bypass_kind {
    BFC_BYPASS_ASYNC,
    BFC_BYPASS_MANAGED,
    BFC_BYPASS_VMM,
    BFC_BYPASS_ARRAY,
    BFC_BYPASS_PITCH,
    BFC_BYPASS_V1,
    BFC_BYPASS_HOST,
    /* The program got the address of an allocating function from the driver, and the library
     * recognised neither the function's name and version nor the address. */
    BFC_BYPASS_UNKNOWN_ENTRY,
    BFC_BYPASS_KINDS = 16,
};

/*
 * Number of bins of the histogram of requested sizes. Bin b counts requests above 2^(b-1) and up to
 * 2^b bytes; the last bin also counts all larger ones.
 */
#define BFC_SIZE_BINS 48u

/*
 * Number of sets ("lanes") of the counters that change at every call. The first threads get a lane
 * each, and all further threads share the last one, so that threads rarely write to the same cache
 * line. A count is the sum over all lanes.
 */
#define BFC_LANES 8u

struct bfc_lane {
    /* how often a free waited on the host until all work of the context had finished */
    uint64_t host_waits;
    uint64_t fences; /* how many CUDA events were recorded for frees */
    /* how often a context was made to wait on the device for the work of earlier frees */
    uint64_t device_waits;
    uint64_t sizes[BFC_SIZE_BINS];
};

static inline unsigned bfc_size_bin(uint64_t bytes) {
    unsigned bin = bytes <= 1 ? 0 : 64u - (unsigned)__builtin_clzll(bytes - 1);
    return bin < BFC_SIZE_BINS ? bin : BFC_SIZE_BINS - 1;
}

/*
 * Histograms of the latencies of calls in nanoseconds, with four bins for each power of two. A
 * latency belongs to bin b if it is at least bfc_latency_bin_start(b), but less than that of b + 1;
 * the last bin also counts all longer ones.
 *
 * Not every call is timed. Of a thread's first BFC_LATENCY_CLOSELY calls one in
 * BFC_LATENCY_SAMPLING is timed. Later only about one in BFC_LATENCY_WEIGHT × BFC_LATENCY_SAMPLING
 * is timed, and each of these counts as BFC_LATENCY_WEIGHT calls.
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

/* Returns the shortest latency that belongs to the bin, in nanoseconds. */
static inline uint64_t bfc_latency_bin_start(unsigned bin) {
    return bin < 4 ? bin : (uint64_t)(4 + bin % 4) << (bin / 4 - 1);
}

/* What an allocation tries, in this order, after the device has refused it memory and before it
 * fails. The first step is a part of the pool, so it is counted in the pool's own counters
 * (pool/stats.h). */
enum bfc_rung {
    /* the allocation's own pool waits for the work of earlier frees, and gives idle regions back */
    BFC_RUNG_POOL,
    /* other contexts of this process on the same device give idle regions back */
    BFC_RUNG_CONTEXTS,
    BFC_RUNG_JOBS, /* other jobs give back free memory that they cache */
    /* other jobs that may sleep give back all their memory, and keep its contents elsewhere */
    BFC_RUNG_SLEEP,
    /* with BFC_WAIT: the allocation waits until other jobs free memory that they use */
    BFC_RUNG_WAIT,
    BFC_RUNG_SPILL, /* with BFC_SPILL: the allocation gets host memory */
    BFC_RUNGS = 8,  /* the length of arrays by this enum, with unused elements for later steps */
};

struct bfc_rung_counts {
    uint64_t climbed; /* how often allocations have tried this step of enum bfc_rung */
    uint64_t saved;   /* how many allocations got their memory by this step of enum bfc_rung */
    uint64_t ns;      /* nanoseconds that allocations spent in this step of enum bfc_rung */
};

/*
 * A thread that waits for memory which other jobs use (BFC_WAIT). All such threads for one device,
 * in all jobs of the user, form one queue in the order of `since_ns`. If a waiting thread has not
 * examined the queue for BFC_WAITER_LOST_NS, it is taken to be stopped, and those behind it in the
 * queue do not wait for it. A thread that frees memory, or leaves the queue, wakes each waiting
 * thread: it adds 1 to that thread's `wake`, which is a futex. All times are nanoseconds of
 * CLOCK_MONOTONIC.
 */
#define BFC_WAITERS 8u
#define BFC_WAITER_LOST_NS UINT64_C(2000000000)

struct bfc_waiter {
    /* bytes that the waiting thread requested; 0: this entry of the array is free */
    uint64_t bytes;
    uint64_t since_ns;
    uint64_t seen_ns; /* when the waiting thread last examined the queue */
    uint32_t wake;
    uint32_t pool; /* index of the section of the pool whose allocation waits */
    /* the waiting thread's place in the queue, from 1, when it last examined the queue */
    uint32_t position;
    /* How much more of the device the waiting process uses than it has reserved, because the driver
     * rounds sizes up; in units of 4 KiB. */
    uint32_t rounded_4k;
};

/*
 * Tells this job what the first thread in the queue for the device, which is a thread of another
 * job, still needs. That thread writes it into each section of this job on the device, renews it
 * from time to time, and wakes this job's helper thread, which may then give memory back.
 */
struct bfc_awaited {
    /* until when this structure is valid, in nanoseconds of CLOCK_MONOTONIC; 0: no other job
     * waits */
    uint64_t until_ns;
    /* when the waiting thread became the first of the queue, in nanoseconds of CLOCK_MONOTONIC */
    uint64_t turn_ns;
    uint64_t bytes; /* bytes that the waiting thread requested */
    /* Bytes that this job would have to give back for the waiting thread to be served, if all other
     * jobs gave back the memory that they cache. All ones: this job need not give any. */
    uint64_t from_here;
};

/*
 * The memory behind a pool's addresses with BFC_BACKING=pages; otherwise all fields are 0. A page
 * is memory that the device made in one call. It can be mapped at other addresses later: each
 * mapping but its first counts as a move. `created` less `released` bytes of `addresses` have
 * memory behind them. The pool's own count `reserved` also includes plain regions that it took when
 * it could not get pages. Each field is atomic, but a reader may see them from different times.
 */
struct bfc_segment_pages {
    /* bytes of addresses that are reserved now, with or without pages behind them */
    uint64_t addresses;
    uint64_t created; /* bytes of all pages that the device ever made */
    /* bytes of all mappings of pages ever made, the first mapping of each page included */
    uint64_t mapped;
    uint64_t released; /* bytes of all pages that were ever given back to the device */
    uint64_t calls;    /* number of calls of the driver's virtual memory management */
    /* at the time `looked_ns`: bytes of pages that hold no block in use, pending or deferred */
    uint64_t ready;
    /* at the time `looked_ns`: bytes of pages that must not move, because other processes or
     * libraries know their addresses */
    uint64_t pinned;
    /* when a reader last had the map refreshed: nanoseconds of CLOCK_REALTIME; 0: never */
    uint64_t looked_ns;
    uint64_t
        /* bytes of pages that were given back because the job is asleep; the pool still counts them
         * as reserved */
        asleep;
};

/* Returns the bytes of all pages that exist. */
static inline uint64_t bfc_pages_backed(const struct bfc_segment_pages *pages) {
    return pages->created > pages->released ? pages->created - pages->released : 0;
}

/* Returns the bytes of all mappings of pages but the first of each page: how many bytes have
 * moved. */
static inline uint64_t bfc_pages_moved(const struct bfc_segment_pages *pages) {
    return pages->mapped > pages->created ? pages->mapped - pages->created : 0;
}

/*
 * How fragmented the free memory is: how much of it lies in blocks that are too small for the
 * largest allocation among the last BFC_EVENTS events. It is measured when a reader has the map
 * refreshed. If these events have no allocation, `request` keeps its value. Each field is atomic,
 * but a reader may see them from different times.
 */
struct bfc_segment_fit {
    uint64_t request;   /* bytes of the largest recent allocation; 0: not measured yet */
    uint64_t too_small; /* ready bytes in blocks that are too small for `request` */
};

enum bfc_plan_source {
    BFC_PLAN_NONE = 0,
    BFC_PLAN_OF_FILE = 1, /* the plan file that BFC_PLAN names */
    BFC_PLAN_OF_LOOP = 2, /* with BFC_PLAN=auto: a plan that the job made of its own loop */
};

/* The plan that the allocations of the pool's context follow, and how well they follow it: an
 * allocation counts as followed, unplanned or missed. Each field is atomic, but a reader may see
 * them from different times. */
struct bfc_segment_plan {
    /* A value of enum bfc_plan_source. The other fields describe the plan that was followed last,
     * or are 0 if there was none. */
    uint64_t source;
    uint64_t prefix; /* number of allocations of the plan on this device before its first period */
    /* number of allocations of the plan on this device in one period; 0: the plan holds a whole
     * run */
    uint64_t period;
    uint64_t periods;  /* how many periods of the plan the job has begun */
    uint64_t bound;    /* the lower bound: bytes that every plan for the device needs at least */
    uint64_t peak;     /* bytes that this plan needs */
    uint64_t memory;   /* bytes that are reserved for the plan's addresses now; 0: none */
    uint64_t followed; /* number of allocations that got their planned addresses */
    /* number of allocations that are in the plan, but without an address, for instance because
     * their blocks live longer than a period */
    uint64_t unplanned;
    /* number of all other allocations */
    uint64_t missed;
    uint64_t busy; /* how many of the missed allocations found their planned address in use */
    /* how often the job was found to be at another place of the plan than the expected one */
    uint64_t resumed;
    /* how often the place in the plan was lost, because the allocations matched no part of it; the
     * plan was then not followed until an anchor came or the next period began */
    uint64_t lost;
    /* When an allocation last differed from the plan, another one was expected. This is the number
     * of the expected one among the allocations of the plan, from 0. */
    uint64_t divergence;
    /* bytes of the planned allocation that was expected when an allocation last differed from the
     * plan, rounded up */
    uint64_t expected;
    /* bytes of the last allocation that differed from the plan, rounded up; 0: none has differed
     * yet */
    uint64_t came;
    /* when an allocation last differed from the plan: nanoseconds of CLOCK_REALTIME */
    uint64_t diverged_ns;
    /* For a plan that the job made: bytes that the pool had reserved before it first requested
     * memory for a plan; 0: it never requested any. */
    uint64_t before;
};

struct bfc_segment_pool {
    uint64_t state;  /* a value of enum bfc_pool_state */
    uint64_t memory; /* a value of enum bfc_memory */
    int64_t device;  /* CUDA's number of the device in this process */
    /* the context's id from cuCtxGetId; if the driver lacks that call, a number that the library
     * chose */
    uint64_t context_id;
    /* bytes of memory that the device has; for a pool of host memory, the limit that BFC_SPILL
     * sets */
    uint64_t device_total;
    uint8_t device_uuid[16]; /* the device's UUID; all zero for a pool of host memory */
    char device_name[64];    /* the device's name, NUL-terminated */
    /* the device's PCI address, such as "0000:3B:00.0", NUL-terminated; empty: the driver does not
     * tell it */
    char device_bus_id[24];
    /* bytes that were free on the device when the job last asked the driver, as it does when a pool
     * grows */
    uint64_t device_free;
    /* when the job last asked for `device_free`: nanoseconds of CLOCK_REALTIME; 0: never */
    uint64_t device_free_ns;
    /* How often frees have waited on the host, without the waits that are counted in the lanes.
     * bfc_host_waits adds up both. */
    uint64_t host_waits;
    uint64_t host_wait_ns;
    /* Always 0 in a segment, where the lanes have these counts. A reader's copy gets the sums over
     * the lanes here (bfc_sum_lanes). */
    uint64_t fences, device_waits;
    struct bfc_pool_stats stats;
    /* The element BFC_RUNG_POOL is always 0, because the pool's own counters have its counts. */
    struct bfc_rung_counts rungs[BFC_RUNGS];
    struct bfc_lane lanes[BFC_LANES];
    uint64_t allocate_latency[BFC_LATENCY_BINS];
    uint64_t free_latency[BFC_LATENCY_BINS];
    uint64_t
        host_wait_latency[BFC_LATENCY_BINS]; /* durations of the waits that `host_waits` counts */
    struct bfc_segment_pages pages;
    struct bfc_segment_fit fit;
    struct bfc_segment_plan plan;
    struct bfc_awaited awaited; /* written by threads of other jobs */
};

/* Returns how often frees of this pool have waited on the host for work on the device. */
static inline uint64_t bfc_host_waits(const struct bfc_segment_pool *section) {
    uint64_t waits = section->host_waits;
    for (unsigned lane = 0; lane < BFC_LANES; lane++)
        waits += section->lanes[lane].host_waits;
    return waits;
}

/* To be called on a reader's copy of a section: writes the sums over the lanes into the fields of
 * the section itself. */
static inline void bfc_sum_lanes(struct bfc_segment_pool *copy) {
    copy->host_waits = bfc_host_waits(copy);
    for (unsigned lane = 0; lane < BFC_LANES; lane++) {
        copy->fences += copy->lanes[lane].fences;
        copy->device_waits += copy->lanes[lane].device_waits;
    }
}

/*
 * The map shows which parts of each region are in use. Each region has a row; the rows of a pool
 * are in the order of their addresses. The helper thread writes the map only when a reader requests
 * it (refresh_asked). `sequence` is odd while it does so. Each cell of a row is for `cell_bytes`
 * bytes, and the last cell for the rest of the region. The upper four bits of a cell are the share
 * of its bytes in use, the lower four bits the share that is pending or deferred, both in
 * fifteenths and rounded up; the rest is ready. BFC_MAP_BARE means that no byte of the cell has
 * memory behind it. In a region of BFC_BACKING=pages, the row ends where the last page ends.
 */
#define BFC_MAP_ROWS 256u
#define BFC_MAP_CELLS 128u
#define BFC_MAP_BARE 0xffu

struct bfc_map_row {
    uint64_t start, size; /* the region's first address, and its size in bytes */
    uint64_t pool;        /* index of the section of the region's pool */
    uint64_t cell_bytes;
    uint8_t cells[BFC_MAP_CELLS];
};

struct bfc_map {
    uint64_t sequence;
    uint64_t rows;     /* number of rows that are valid, at most BFC_MAP_ROWS */
    uint64_t left_out; /* number of regions that have no row because the map was full */
    /* when the map was last written: nanoseconds of CLOCK_REALTIME; 0: never */
    uint64_t refreshed_ns;
    struct bfc_map_row row[BFC_MAP_ROWS];
};

/*
 * Lengths of two ring buffers of events. `events` has the last BFC_EVENTS events of every kind.
 * `landmarks` has the last BFC_LANDMARKS events that are neither allocations nor frees, because
 * allocations and frees soon overwrite them in `events`. Event number n (from 0) is in element n
 * modulo the ring's length. Its `stamp` is n + 1, or 0 while a thread writes it. A thread takes
 * BFC_EVENT_BATCH numbers at once and may use only some, so an element may still have an older
 * stamp; then a reader skips it.
 *
 * `what` consists, from the lowest bit, of the kind (6 bits), the index of the pool's section (6
 * bits) and the microseconds since the header's `created_ns` (52 bits). An allocation or a free has
 * the time at which its thread last read the clock, which is at most 8 events of that thread
 * earlier.
 */
#define BFC_EVENTS 4096u
#define BFC_LANDMARKS 256u
#define BFC_EVENT_BATCH 8u

enum bfc_event_kind {
    BFC_EVENT_NONE,
    BFC_EVENT_ALLOCATE, /* `address`: the block; `bytes`: what the program requested */
    BFC_EVENT_FREE,     /* `address`: the block; `bytes`: 0 */
    /* the pool took a region from the device, or mapped new pages; `address`, `bytes`: where, and
     * how much */
    BFC_EVENT_GROW,
    BFC_EVENT_REFUSED,       /* the device refused the pool a region or pages of `bytes` bytes */
    BFC_EVENT_RELEASE,       /* a region went back to the device; `address`, `bytes`: the region */
    BFC_EVENT_OUT_OF_MEMORY, /* an allocation of `bytes` bytes failed */
    /* Memory was given back because another process requested it. `address`: the bytes that it
     * requested; `bytes`: those that were given back. The pool's index is 63, which means all
     * pools. */
    BFC_EVENT_TRIM,
    /* the program freed `address`, which is not the start of a block in use */
    BFC_EVENT_INVALID_FREE,
    BFC_EVENT_BEGIN, /* a pool was made for a context */
    BFC_EVENT_END,   /* a pool ended because its context ended */
    /* A step of enum bfc_rung served an allocation to which the device had refused memory.
     * BFC_EVENT_WAITED also comes if the allocation waited in vain. `address`: nanoseconds that the
     * step took; `bytes`: what the program requested. */
    BFC_EVENT_SAVED_CONTEXTS,
    BFC_EVENT_SAVED_JOBS,
    BFC_EVENT_WAITED,
    BFC_EVENT_SPILLED,
    /* memory was reserved for the addresses of a plan; `address`, `bytes`: where, and how much */
    BFC_EVENT_PLAN_FOLLOWED,
    /* the allocations have stopped matching the plan; `bytes`: size of the last allocation, rounded
     * up */
    BFC_EVENT_PLAN_LOST,
    /* BFC_BACKING=auto is set, and the pool now takes plain regions instead of pages */
    BFC_EVENT_PAGES_LEFT,
    /* The step BFC_RUNG_SLEEP served an allocation to which the device had refused memory.
     * `address`: nanoseconds that the step took; `bytes`: what the program requested. */
    BFC_EVENT_SAVED_SLEEP,
    /* the pool's job fell asleep; `address`: nanoseconds that it took; `bytes`: given back to the
     * device */
    BFC_EVENT_ASLEEP,
    /* the pool's job woke; `address`: nanoseconds that it took; `bytes`: taken from the device
     * again */
    BFC_EVENT_AWAKE,
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

/* Whether the library notices all calls that submit work to the device (BFC_GATE), so that a free
 * needs no CUDA event while all work goes to one stream. */
enum bfc_gate_state {
    BFC_GATE_NOT_USED = 0,
    BFC_GATE_COUNTS = 1,
    /* The program may submit work in ways that the library does not notice, so frees record CUDA
     * events again. `why` says in which way. */
    BFC_GATE_GIVEN_UP = 2,
};

/* To how many streams the program submits work at present. Below BFC_STREAMS_SEVERAL all work is in
 * one order, so frees need no CUDA events. */
enum bfc_gate_streams {
    BFC_STREAMS_NONE = 0, /* no work was submitted yet, or all submitted work is complete */
    BFC_STREAMS_ONE = 1,
    /* to the legacy default stream and one blocking stream, which wait for each other */
    BFC_STREAMS_ORDERED = 2,
    BFC_STREAMS_SEVERAL = 3,
};

struct bfc_segment_gate {
    uint64_t state; /* a value of enum bfc_gate_state */
    /* a value of enum bfc_gate_streams; valid only while `state` is BFC_GATE_COUNTS */
    uint64_t streams;
    /* Number of streams that have had work, at most 1,024. Streams that had the same handle one
     * after the other count as one. */
    uint64_t seen;
    /* how often the state in which all work goes to one stream has ended */
    uint64_t left;
    /* how often the library has checked at random that no work is submitted unnoticed */
    uint64_t checks;
    /* why `state` is BFC_GATE_GIVEN_UP; NUL-terminated, and written before that state */
    char why[96];
};

enum bfc_sleep_state {
    BFC_SLEEP_AWAKE = 0,
    /* The job is falling asleep: the contents of its memory are being copied elsewhere. If the
     * program submits work meanwhile, the job stays awake. */
    BFC_SLEEP_FALLING = 1,
    BFC_SLEEP_ASLEEP = 2,
    BFC_SLEEP_WAKING = 3,
};

/*
 * The state of a job's sleep. While a job is asleep, the contents of its memory are kept elsewhere,
 * and the device's memory is given back. To have the job fall asleep, another process adds 1 to
 * `asked`; to have it wake, it adds 1 to `wake_asked`. A job that lacks memory adds 1 to `begged`
 * of another job, whose own settings then decide whether it falls asleep. In each case the process
 * then adds 1 to the header's `request`, a futex, and wakes it. The job has answered when
 * `answered` has reached the sum that `asked`, `begged` and `wake_asked` had then. `state` is then
 * the result, and `why` the reason if the job did not do what was asked.
 */
struct bfc_segment_sleep {
    uint64_t state;    /* a value of enum bfc_sleep_state */
    uint64_t since_ns; /* when the state last changed: nanoseconds of CLOCK_REALTIME */
    /* when the job was last seen to submit work, as far as the library notices it: nanoseconds of
     * CLOCK_MONOTONIC; 0: never */
    uint64_t active_ns;
    uint64_t woke_ns;      /* when the job last woke: nanoseconds of CLOCK_MONOTONIC; 0: never */
    uint64_t falls, wakes; /* how often the job has fallen asleep, and how often it has woken */
    /* nanoseconds that the last falling asleep and the last waking took */
    uint64_t fall_ns, wake_ns;
    uint64_t refused; /* how often the job could not wake at once because the device was full */
    uint64_t kept;    /* bytes of the pools that stayed on the device while the job is asleep */
    uint32_t asked, begged, wake_asked, answered;
    /* where the contents are while the job is asleep: host memory or a folder; NUL-terminated */
    char where[256];
    /* why the job did not fall asleep, or why some memory stayed on the device; NUL-terminated */
    char why[112];
};

struct bfc_segment_header {
    /* BFC_SEGMENT_MAGIC; it is written last, when the constant part of the header is complete */
    uint64_t magic;
    uint32_t version;
    uint32_t header_size; /* always sizeof(struct bfc_segment_header) */
    uint64_t total_size;  /* size of the whole segment in bytes */
    uint32_t pool_size;   /* always sizeof(struct bfc_segment_pool) */
    uint32_t pool_count;  /* always BFC_SEGMENT_POOLS */

    /* Identity of the job. */
    int32_t pid; /* process id in the job's own pid namespace */
    uint32_t uid;
    uint64_t pid_namespace; /* inode number of the job's pid namespace */
    /* when the process started, in clock ticks after boot: field 22 of /proc/PID/stat */
    uint64_t start_time;
    uint64_t created_ns; /* when the segment was made: nanoseconds of CLOCK_REALTIME */
    /* the program and its arguments, joined by blanks, cut off if too long, NUL-terminated */
    char command[256];
    char library[32]; /* version of the preloaded library */
    /* for a process of a parallel program: the launcher's name of that program; else empty */
    char job[64];
    /* number (rank) of this process among those of the parallel program; -1: it is not known to be
     * one */
    int32_t rank;
    int32_t local_rank; /* the process's number among those on this machine; -1: unknown */
    int32_t ranks;      /* how many processes the parallel program has; -1: unknown */

    /* `configuration` has a line NAME=value for each setting in force, and `complaints` a line for
     * each malformed variable; configuration_errors is the number of complaints. */
    uint32_t configuration_errors;
    char configuration[4096];
    char complaints[1024]; /* cut off if too long */

    /* a robust futex that shows whether the job is alive; see the beginning of the file */
    uint32_t owner;

    /*
     * Words by which other processes make requests. To have memory given back, a process adds the
     * number of bytes to request_bytes; to have largest_free and the map brought up to date, it
     * adds 1 to refresh_asked. Then it adds 1 to `request` and wakes that futex. The job has
     * answered when request_served has reached the value that `request` got by this.
     */
    uint32_t request;
    uint32_t request_served;
    uint32_t refresh_asked;
    uint64_t request_bytes;
    uint64_t released_bytes; /* bytes that the job has given back on request since it began */

    /* The numbers that the next event and the next landmark get. */
    uint64_t next_event;
    uint64_t next_landmark;

    /* Counters of the whole process. */
    /* Allocations and frees of former pools, whose sections were given to other contexts. The
     * process's totals are these counts plus those of all sections. */
    uint64_t pooled_allocations;
    uint64_t pooled_frees;
    uint64_t forwarded_allocations[BFC_FORWARD_REASONS];
    uint64_t forwarded_frees[BFC_FORWARD_REASONS];
    uint64_t bypassed_calls[BFC_BYPASS_KINDS];
    uint64_t bypassed_bytes[BFC_BYPASS_KINDS];
    struct bfc_waiter waiters[BFC_WAITERS];
    /* To get the file of layout/who.h, a process adds 1 to who_asked, and then adds 1 to `request`
     * and wakes that futex. To get the pools' blocks in the file as well, it adds 1 to blocks_asked
     * before. The job sets who_written to the value of who_asked when it has written the file, or
     * when it has nothing to write. plan_asked and plan_written serve in the same way to get the
     * plans that the job's contexts follow or followed last. */
    uint32_t who_asked;
    uint32_t who_written;
    uint32_t plan_asked;
    uint32_t plan_written;
    uint32_t blocks_asked;
    uint32_t zero;
    struct bfc_segment_gate gate;
    struct bfc_segment_sleep sleep;
    uint64_t reserved_for_growth[4]; /* always zero */
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

/* Returns the array of pool sections in a segment of which the whole is mapped. */
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

/*
 * Reads the segments that jobs publish, trusting nothing in them.
 *
 * A segment is opened by name in a directory (normally /dev/shm), checked (kind of file, owner,
 * magic, version, sizes, strings), and copied: the caller only ever sees the copy. A pool's section
 * is copied under its sequence number (pool/stats.h), with a bounded number of tries; when they run
 * out, because the job died in mid-write or writes without pause, the copy is taken as it is and
 * marked as torn. The segment may be cut off while it is read: the fault that this raises is caught
 * and the segment refused.
 *
 * Nothing here blocks, and nothing is written, except that bfc_segment_sweep removes a segment.
 * tools/segment_request.h has what writes the request words.
 *
 * Thread-safety: bfc_segment_read sets the process's action on SIGBUS for the time of the copy, so
 * one thread at a time may read. The rest may be called from any thread.
 */
#ifndef BFC_TOOLS_SEGMENT_READER_H
#define BFC_TOOLS_SEGMENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "interpose/segment_layout.h"

#define BFC_SEGMENT_DIRECTORY "/dev/shm"
#define BFC_SEGMENT_NAME_MAX 64u

/* What a segment's name says. */
struct bfc_segment_name {
    char text[BFC_SEGMENT_NAME_MAX]; /* the file's name, no slash */
    uint32_t uid;
    uint64_t pid_namespace;
    int32_t pid;
};

enum bfc_job_state {
    BFC_JOB_RUNNING,
    BFC_JOB_ENDED,
    BFC_JOB_UNKNOWN, /* it has no helper thread, and its pid is of another pid namespace */
};

/*
 * One segment, copied: some 360 KiB. Every string is NUL-terminated; every state and count is in
 * its range. Rows of the map are sound: bfc_map_row_cells(row) is 1 to BFC_MAP_CELLS. Events are in
 * the order of their numbers; the pool of one may be 63: none in particular.
 */
struct bfc_job {
    struct bfc_segment_name name;
    enum bfc_job_state state;
    uint32_t torn; /* bit i: the counters of pools[i] are not of one consistent moment */
    struct bfc_segment_header header;
    struct bfc_segment_pool pools[BFC_SEGMENT_POOLS];
    struct bfc_map map; /* no rows: nobody has asked for it yet, or it could not be had whole */
    size_t landmark_count, event_count;
    struct bfc_event landmarks[BFC_LANDMARKS], events[BFC_EVENTS];
};

enum bfc_read_result {
    BFC_READ_OK,
    BFC_READ_ABSENT,  /* there is no such segment (any more) */
    BFC_READ_YOUNG,   /* the job is still making it */
    BFC_READ_REFUSED, /* not ours to read, foreign, truncated, of another version, damaged */
};

/* Opens the directory for the functions below; -1 with errno set on failure. Closed by close(). */
int bfc_segment_directory_open(const char *path);

/* Whether `text` is a segment's name; if so, `name` is set. */
bool bfc_segment_name_parse(const char *text, struct bfc_segment_name *name);

/*
 * Copies the segment into `job`. On any other result than BFC_READ_OK `job` is undefined and
 * `reason` (cut off at `size` bytes) says why in one line, without a newline.
 */
enum bfc_read_result bfc_segment_read(int directory, const struct bfc_segment_name *name,
                                      struct bfc_job *job, char *reason, size_t size);

/*
 * The names of all segments in the directory, in the order of their pids, into an array that the
 * caller frees. Returns their number; -1 with errno set on failure.
 */
ssize_t bfc_segment_list(int directory, struct bfc_segment_name **names);

/*
 * Removes the segment if its process is certainly dead and the file is this user's. `job` is the
 * copy, or NULL when the segment could not be read: then only a pid of this pid namespace that no
 * process has is dead. Returns whether it was removed.
 */
bool bfc_segment_sweep(int directory, const struct bfc_segment_name *name,
                       const struct bfc_job *job);

/* This process's pid namespace (inode number); 0 when unknown. */
uint64_t bfc_own_pid_namespace(void);

/* The value of NAME in the copied configuration, up to the line's end, or NULL; *length is set. */
const char *bfc_job_configured(const struct bfc_job *job, const char *name, size_t *length);

/* Cells of a row of the map that are in use. */
unsigned bfc_map_row_cells(const struct bfc_map_row *row);

/* The histogram of sizes: the sum of its lanes. */
void bfc_pool_sizes(const struct bfc_segment_pool *pool, uint64_t sizes[BFC_SIZE_BINS]);

/*
 * The latency that `share` (0 to 1) of the timed calls did not exceed, in nanoseconds, to the end
 * of its bin (a quarter octave); 0 when none was timed.
 */
uint64_t bfc_latency_quantile(const uint64_t bins[BFC_LATENCY_BINS], double share);

/* Allocations and frees that a pool answered, over the whole life of the process. */
struct bfc_pooled_calls {
    uint64_t allocations, frees;
};
struct bfc_pooled_calls bfc_job_pooled(const struct bfc_job *job);

/* Bytes free in the pool's regions: clean, dirty and in limbo. Saturates. */
uint64_t bfc_pool_cached(const struct bfc_pool_stats *stats);

/*
 * The share of the cached bytes outside the largest free block, 0 to 1; 0 when none is cached.
 * Negative when the job has not looked for its largest free block yet.
 */
double bfc_pool_fragmentation(const struct bfc_pool_stats *stats);

/* The share of allocations that did not ask the device, 0 to 1; negative when there were none. */
double bfc_pool_hit_rate(const struct bfc_pool_stats *stats);

#endif

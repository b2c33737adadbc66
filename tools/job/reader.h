/*
 * Reads the segments that jobs publish, trusting nothing in them.
 *
 * A segment is opened by name in a directory (normally /dev/shm), checked (kind of file, owner,
 * magic, version, sizes, strings), and copied: the caller only ever sees the copy. A pool's section
 * is copied under its sequence number (pool/stats.h), with a bounded number of tries. When they run
 * out, because the job died during a write or writes without pause, the copy is kept as it is and
 * marked as torn. If the segment is truncated while it is read, the SIGBUS that this raises is
 * caught, and the segment is refused.
 *
 * All waits for a writer are bounded. Nothing is written, except that bfc_segment_sweep removes a
 * segment; tools/job/client.h has the functions that write the request words.
 *
 * Thread-safety: bfc_segment_read and bfc_segment_read_figures set the process's action on SIGBUS
 * for the time of the copy, so one thread at a time may call them. The rest may be called from any
 * thread.
 */
#ifndef BFC_TOOLS_JOB_READER_H
#define BFC_TOOLS_JOB_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "segment/figures.h"
#include "segment/segment_file.h"

enum bfc_job_state {
    BFC_JOB_RUNNING,
    BFC_JOB_ENDED,
    BFC_JOB_UNKNOWN, /* it has no helper thread, and its pid is of another pid namespace */
};

/* A copy of one segment, some 400 KiB. Every string is NUL-terminated; every state and count is in
 * its range. Rows of the map are sound: bfc_map_row_cells(row) is 1 to BFC_MAP_CELLS. Events are in
 * the order of their numbers. The pool of an event may be 63, for an event of no pool in
 * particular. */
struct bfc_job {
    struct bfc_segment_name name;
    enum bfc_job_state state;
    uint32_t torn; /* bit i: the counters of pools[i] are not of one consistent moment */
    struct bfc_segment_header header;
    struct bfc_segment_pool pools[BFC_SEGMENT_POOLS];
    struct bfc_map map; /* no rows: not requested yet, or no consistent copy */
    size_t landmark_count, event_count;
    struct bfc_event landmarks[BFC_LANDMARKS], events[BFC_EVENTS];
};

/*
 * Copies the segment into `job`. On any other result than BFC_READ_OK `job` is undefined and
 * `reason` (cut off at `size` bytes) says why in one line, without a newline.
 */
enum bfc_read_result bfc_segment_read(int directory, const struct bfc_segment_name *name,
                                      struct bfc_job *job, char *reason, size_t size);

/* Copies the segment as bfc_segment_read does, but without the map and the events, which are most
 * of it. `job` must be all zeros, and is all zeros again on any other result than BFC_READ_OK. What
 * is not read is not touched, so that many jobs in an array from calloc take little memory. */
enum bfc_read_result bfc_segment_read_figures(int directory, const struct bfc_segment_name *name,
                                              struct bfc_job *job, char *reason, size_t size);

/* Stores the names of all segments in the directory, in the order of their pids, in an array that
 * the caller frees. Returns their number; -1 with errno set on failure. */
ssize_t bfc_segment_list(int directory, struct bfc_segment_name **names);

/*
 * Removes the segment if its process is certainly dead and the file is this user's. `job` is the
 * copy, or NULL when the segment could not be read: it is then removed only if its pid is of this
 * pid namespace and no process has it. Returns whether it was removed.
 */
bool bfc_segment_sweep(int directory, const struct bfc_segment_name *name,
                       const struct bfc_job *job);

/* Returns the value of NAME in the copied configuration, or NULL; the value ends at the line's end,
 * after *length bytes. */
const char *bfc_job_configured(const struct bfc_job *job, const char *name, size_t *length);

/* Allocations and frees that a pool answered, over the whole life of the process. */
struct bfc_pooled_calls {
    uint64_t allocations, frees;
};
struct bfc_pooled_calls bfc_job_pooled(const struct bfc_job *job);

#endif

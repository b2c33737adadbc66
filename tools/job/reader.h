/*
 * Copies the segments (shared-memory files) that jobs publish, and checks all that they say, since
 * a job can write anything.
 *
 * A segment is opened by name in a folder (normally /dev/shm), checked (kind of file, owner, magic,
 * version, sizes, strings), and copied: the caller only ever sees the copy. The job may change its
 * counters at any time, and marks each change by a sequence number (pool/stats.h); a copy that
 * overlaps a change is made again, a bounded number of times. If none succeeds, because the job
 * died during a change or changes the counters without pause, the last copy is kept and marked as
 * torn. If the segment is truncated while it is read, the SIGBUS that this raises is caught, and
 * the segment is refused.
 *
 * All waits for the job are bounded. Nothing is written, except that bfc_segment_sweep removes a
 * segment; tools/job/client.h has the functions that send requests to a job.
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
    /* not known: the job has no thread that answers requests, and its pid is of another pid
     * namespace */
    BFC_JOB_UNKNOWN,
};

/* A copy of one shared-memory segment, some 400 KiB. Every string is NUL-terminated; every state
 * and count is in its range. In each row of the map, bfc_map_row_cells(row) is 1 to BFC_MAP_CELLS.
 * Events are in the order of their numbers. The pool of an event is 63 if the event concerns no
 * pool in particular. */
struct bfc_job {
    struct bfc_segment_name name;
    enum bfc_job_state state;
    uint32_t torn; /* bit i: the copy of the counters of pools[i] may be half old and half new */
    struct bfc_segment_header header;
    struct bfc_segment_pool pools[BFC_SEGMENT_POOLS];
    /* which parts of each region are in use; has no rows if the job was not asked for that yet, or
     * the copy failed */
    struct bfc_map map;
    size_t landmark_count, event_count;
    struct bfc_event landmarks[BFC_LANDMARKS], events[BFC_EVENTS];
};

/*
 * Copies the shared-memory segment into `job`. If the result is not BFC_READ_OK, `job` is
 * undefined, and `reason` (cut off at `size` bytes) says why in one line, without a newline.
 */
enum bfc_read_result bfc_segment_read(int directory, const struct bfc_segment_name *name,
                                      struct bfc_job *job, char *reason, size_t size);

/* Copies the shared-memory segment as bfc_segment_read does, but without the map and the events,
 * which are most of it. `job` must be all zeros, and if the result is not BFC_READ_OK it is all
 * zeros again. The memory for the map and the events is not touched, so that an array of many jobs
 * from calloc takes little memory. */
enum bfc_read_result bfc_segment_read_figures(int directory, const struct bfc_segment_name *name,
                                              struct bfc_job *job, char *reason, size_t size);

/* Stores the names of all shared-memory segments in the folder, sorted by pid, in an array that the
 * caller frees. Returns how many there are; -1 with errno set on failure. */
ssize_t bfc_segment_list(int directory, struct bfc_segment_name **names);

/*
 * Removes the shared-memory segment if its process is certainly dead and the file belongs to this
 * user. `job` is the copy, or NULL if the segment could not be read: then it is removed only if its
 * pid is of this process's pid namespace and no process has that pid. Returns whether it was
 * removed.
 */
bool bfc_segment_sweep(int directory, const struct bfc_segment_name *name,
                       const struct bfc_job *job);

/* Returns the value of the setting `name` in job->header.configuration, or NULL. The value is not
 * NUL-terminated: it has *length bytes, to the end of its line. */
const char *bfc_job_configured(const struct bfc_job *job, const char *name, size_t *length);

/* How many allocations and frees the job's pools served since the process began, pools that have
 * ended included. */
struct bfc_pooled_calls {
    uint64_t allocations, frees;
};
struct bfc_pooled_calls bfc_job_pooled(const struct bfc_job *job);

#endif

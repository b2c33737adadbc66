/*
 * Has a job write a file that answers a question (BFC_ANSWER_NAME_FORMAT), and takes it away.
 *
 * Thread-safety: as bfc_segment_read.
 */
#ifndef BFC_TOOLS_JOB_ANSWER_H
#define BFC_TOOLS_JOB_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "segment/name.h"
#include "segment/request.h"

struct bfc_question {
    const char *answer;                                               /* BFC_WHO_ANSWER... */
    struct bfc_request (*request)(struct bfc_segment_header *header); /* of segment/request.h */
    uint32_t *(*asked)(struct bfc_segment_header *header);            /* its words there */
    uint32_t *(*written)(struct bfc_segment_header *header);
    const char *unknown; /* what a library that does not know it lacks: "which takes no stacks" */
    const char *none;    /* why there may be no file: "has taken no stacks: ..." */
};

/* Reads an open file as a whole into `to`; false: it is not what it should be. */
typedef bool bfc_answer_take(int file, void *to);

/*
 * Waits at most `timeout_ms` for the job, each time that it asks: again where another reader was
 * faster. An answer counts only if it is of the segment's owner. False: `reason` (cut off at `size`
 * bytes) says why, in one line.
 */
bool bfc_answer_fetch(int directory, const struct bfc_segment_name *name,
                      const struct bfc_question *question, unsigned timeout_ms,
                      bfc_answer_take *take, void *to, char *reason, size_t size);

/* The rest of a file, of at most `most` bytes, in memory to be freed; NULL: it is no regular file,
 * larger or smaller than `least`, or the host has no memory. `size` is set to its bytes. */
void *bfc_answer_read(int file, size_t least, size_t most, size_t *size);

#endif

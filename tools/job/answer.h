/*
 * Has a job write a file that answers a question (BFC_ANSWER_NAME_FORMAT is its name), reads the
 * file and removes it.
 *
 * Thread-safety: one thread at a time, as bfc_segment_read.
 */
#ifndef BFC_TOOLS_JOB_ANSWER_H
#define BFC_TOOLS_JOB_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "segment/name.h"
#include "segment/request.h"

struct bfc_question {
    const char *answer; /* part of the file's name, such as BFC_WHO_ANSWER */
    /* Makes the request, by a function of segment/request.h. */
    struct bfc_request (*request)(struct bfc_segment_header *header);
    /* return the words of the header in which requests are counted, and answered requests */
    uint32_t *(*asked)(struct bfc_segment_header *header);
    uint32_t *(*written)(struct bfc_segment_header *header);
    const char *unknown; /* end of the error message if the job's library is too old, as "which
                            takes no stacks" */
    /* end of the error message if there is no file, as "has taken no stacks: ..." */
    const char *none;
};

/* Reads an open file as a whole into `to`. False: its content is not valid. */
typedef bool bfc_answer_take(int file, void *to);

/*
 * Asks the job and takes the file. If another reader takes the file first, the job is asked again;
 * each time the wait is at most `timeout_ms`. The file must belong to the segment's owner. False:
 * `reason` (cut off at `size` bytes) says why, in one line.
 */
bool bfc_answer_fetch(int directory, const struct bfc_segment_name *name,
                      const struct bfc_question *question, unsigned timeout_ms,
                      bfc_answer_take *take, void *to, char *reason, size_t size);

/* Reads a regular file of `least` to `most` bytes into memory that the caller frees, and sets
 * `size`. NULL: it is no such file, it cannot be read, or the host has no memory. */
void *bfc_answer_read(int file, size_t least, size_t most, size_t *size);

#endif

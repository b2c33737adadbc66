/*
 * Has a job write a file that answers a question (its name is BFC_ANSWER_NAME_FORMAT), reads the
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
    /* part of the name of the answer's file that says which question it answers, such as
     * BFC_WHO_ANSWER */
    const char *answer;
    /* sends the request to the job, with a function of segment/request.h */
    struct bfc_request (*request)(struct bfc_segment_header *header);
    /* Return the addresses of two counts in the shared-memory segment's header: how often this
     * question was asked, and how often the job has answered it. */
    uint32_t *(*asked)(struct bfc_segment_header *header);
    uint32_t *(*written)(struct bfc_segment_header *header);
    /* End of the error message "process 7 runs an older bfcpreload, ...", for a job whose library
     * does not know the question; such as "which takes no stacks". */
    const char *unknown;
    /* End of the error message "process 7 ...", for a job that wrote no file; such as "has taken no
     * stacks". */
    const char *none;
};

/* The type of a function that reads an answer from the open file into `to`. False: the content is
 * not valid. */
typedef bool bfc_answer_take(int file, void *to);

/*
 * Asks the job, reads its answer's file with `take`, and removes the file. If another reader of the
 * same job was faster and has taken the file, asks again; each time the wait is at most
 * `timeout_ms`. The file must belong to the owner of the shared-memory segment. False: `reason`
 * (cut off at `size` bytes) says why, in one line.
 */
bool bfc_answer_fetch(int directory, const struct bfc_segment_name *name,
                      const struct bfc_question *question, unsigned timeout_ms,
                      bfc_answer_take *take, void *to, char *reason, size_t size);

/* Reads a regular file of `least` to `most` bytes into memory that the caller frees, and sets
 * `*size`. NULL: the file is no regular file of such a size or cannot be read, or there is no
 * memory. */
void *bfc_answer_read(int file, size_t least, size_t most, size_t *size);

#endif

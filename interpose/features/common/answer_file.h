/*
 * Files that answer a reader's request (BFC_ANSWER_NAME_FORMAT), in the folder of the segments.
 *
 * Only the helper thread writes one. When the process exits, it removes the files that no reader
 * has removed; a forked child does not.
 */
#ifndef BFC_INTERPOSE_ANSWER_H
#define BFC_INTERPOSE_ANSWER_H

#include <stddef.h>

enum bfc_answer {
    BFC_ANSWER_WHO,  /* which call stacks hold memory (layout/who.h) */
    BFC_ANSWER_PLAN, /* the plans that the job follows (layout/plan.h) */
    BFC_ANSWERS,
};

struct bfc_answer_part {
    const void *bytes;
    size_t size;
};

/* Writes the parts one after the other, in place of an older answer; a failure is logged. */
void bfc_answer_write(enum bfc_answer which, const struct bfc_answer_part *parts, size_t count);

#endif

/*
 * Files that answer a reader's question (BFC_ANSWER_NAME_FORMAT), beside the segment.
 *
 * Only the helper thread writes one. What no reader has taken away goes when the process exits; a
 * forked child has no right to it.
 */
#ifndef BFC_INTERPOSE_ANSWER_H
#define BFC_INTERPOSE_ANSWER_H

#include <stddef.h>

enum bfc_answer {
    BFC_ANSWER_WHO,  /* layout/who.h */
    BFC_ANSWER_PLAN, /* layout/plan.h */
    BFC_ANSWERS,
};

struct bfc_answer_part {
    const void *bytes;
    size_t size;
};

/* Writes the parts one after the other, in place of an older answer; a failure is logged. */
void bfc_answer_write(enum bfc_answer which, const struct bfc_answer_part *parts, size_t count);

#endif

/*
 * Asks a job for copies of the plans that it follows (files of BFC_PLAN_ANSWER), and checks all
 * that they say, since a job can write anything.
 *
 * Thread-safety: one thread at a time, as bfc_segment_read.
 */
#ifndef BFC_TOOLS_JOB_PLAN_H
#define BFC_TOOLS_JOB_PLAN_H

#include "planner/image/image.h"
#include "segment/name.h"

/* Valid plans from a job, at most one for each of its pools; bfc_plans_free frees them. */
struct bfc_plans {
    struct plan_file *list; /* an array; NULL: there are no plans */
    size_t count;
};

/* Asks the job for its plans, and waits at most `timeout_ms`. False: the job has no plan, does not
 * answer, or its answer is not valid; `reason` (cut off at `size` bytes) says why, in one line. */
bool bfc_plans_ask(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                   struct bfc_plans *plans, char *reason, size_t size);

void bfc_plans_free(struct bfc_plans *plans);

#endif

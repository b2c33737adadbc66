/*
 * Asks a job for copies of its plans (BFC_PLAN_ANSWER), trusting nothing in them.
 *
 * Thread-safety: one thread at a time, as bfc_segment_read.
 */
#ifndef BFC_TOOLS_JOB_PLAN_H
#define BFC_TOOLS_JOB_PLAN_H

#include "planner/image/image.h"
#include "segment/name.h"

/* Plans that were checked; bfc_plans_free frees them. */
struct bfc_plans {
    struct plan_file *list; /* NULL: none */
    size_t count;
};

/* Waits at most `timeout_ms` for the job. False: the job has no plan, does not answer, or its
 * answer is damaged; `reason` (cut off at `size` bytes) says why, in one line. */
bool bfc_plans_ask(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                   struct bfc_plans *plans, char *reason, size_t size);

void bfc_plans_free(struct bfc_plans *plans);

#endif

/*
 * Takes the plans out of a job (BFC_PLAN_ANSWER), trusting nothing in them.
 *
 * Thread-safety: as bfc_segment_read.
 */
#ifndef BFC_TOOLS_JOB_PLAN_H
#define BFC_TOOLS_JOB_PLAN_H

#include "planner/image/image.h"
#include "segment/name.h"

/* Plans that were checked. To be freed with bfc_plans_free. */
struct bfc_plans {
    struct plan_file *list; /* NULL: none */
    size_t count;
};

/* Waits at most `timeout_ms` for the job. False: there is none, or it does not tell; `reason` (cut
 * off at `size` bytes) says why, in one line. */
bool bfc_plans_ask(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                   struct bfc_plans *plans, char *reason, size_t size);

void bfc_plans_free(struct bfc_plans *plans);

#endif

/*
 * Extends a plan that a running job made of its own loop, so that the next run of the program can
 * use it. The allocations before the loop are put in front of the plan's events: the next run then
 * meets all its allocations in the plan's order, from the first one on.
 */
#ifndef BFC_PLAN_LEAD_H
#define BFC_PLAN_LEAD_H

#include "layout/plan.h"
#include "planner/common/error.h"
#include "planner/common/text.h"

struct plan_lead_event {
    uint64_t bytes; /* bytes that the program requested */
    uint32_t thread;
    uint32_t reserved; /* always zero */
};

/* The allocations that the program made before the first repetition of the loop, in order. */
struct plan_lead {
    struct plan_lead_event *list;
    uint32_t count;
};

/*
 * Makes the bytes of the extended plan; the caller frees `text` by file_free. `plan` points to the
 * valid bytes of a plan for one device that has no allocations before its loop. The added
 * allocations get no address. If `lead` is NULL, the allocations before the loop are not known; the
 * new plan then has no anchors, because one of those allocations might look like an anchor and so
 * begin the loop too early. False: the host has no memory.
 */
bool plan_with_lead(struct file_text *text, const struct bfc_plan_header *plan,
                    const struct plan_lead *lead, uint64_t program_hash, struct plan_error *error);

#endif

/*
 * Extends the plan of a loop, which was found in a running job, for the next run of the program:
 * the allocations before the loop are put in front of it, so that a replay which begins with the
 * program finds all allocations in order.
 */
#ifndef BFC_PLAN_LEAD_H
#define BFC_PLAN_LEAD_H

#include "layout/plan.h"
#include "planner/common/error.h"
#include "planner/common/text.h"

struct plan_lead_event {
    uint64_t bytes; /* bytes that the program asked for */
    uint32_t thread;
    uint32_t reserved; /* zero */
};

/* The allocations before the first repetition of the loop, in order. */
struct plan_lead {
    struct plan_lead_event *list;
    uint32_t count;
};

/*
 * Makes the bytes of the extended plan; free `text` with file_free. `plan` is the checked bytes of
 * a plan without a prefix, for one device. Allocations before the loop get no address. `lead` NULL
 * means that they are not known; the plan then has no anchors, by which a replay could enter the
 * loop too early. False: no host memory.
 */
bool plan_with_lead(struct file_text *text, const struct bfc_plan_header *plan,
                    const struct plan_lead *lead, uint64_t program_hash, struct plan_error *error);

#endif

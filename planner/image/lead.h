/*
 * The plan of a loop that was found in a running job, for the next run of the program: with what
 * comes before the loop in front of it, so that a replay that begins with the program meets each
 * allocation in its turn.
 */
#ifndef BFC_PLAN_LEAD_H
#define BFC_PLAN_LEAD_H

#include "layout/plan.h"
#include "planner/common/error.h"
#include "planner/common/text.h"

struct plan_lead_event {
    uint64_t bytes; /* asked for */
    uint32_t thread;
    uint32_t reserved; /* zero */
};

/* The allocations before the first repetition, in order. */
struct plan_lead {
    struct plan_lead_event *list;
    uint32_t count;
};

/*
 * Makes the bytes of that plan, into `text`; free with file_free. `plan`: the checked bytes of one
 * without a prefix, of one device. What comes before has no place in it. `lead`: NULL: not known;
 * then there are no anchors, by which a replay would enter the loop too early. False: no host
 * memory.
 */
bool plan_with_lead(struct file_text *text, const struct bfc_plan_header *plan,
                    const struct plan_lead *lead, uint64_t program_hash, struct plan_error *error);

#endif

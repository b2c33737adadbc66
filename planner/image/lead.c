#include "planner/image/lead.h"

#include <stdlib.h>
#include <string.h>

#include "planner/image/image.h"

struct extension {
    const struct bfc_plan_header *plan;
    /* the anchors of the plan to which the allocations before its loop are added */
    const struct bfc_plan_anchor *anchors;
    /* the header of the new plan, which has the allocations before the loop too */
    struct bfc_plan_header header;
    unsigned char *bytes;
    uint32_t lead;
};

static const void *table_of(const struct bfc_plan_header *plan, uint64_t at) {
    return (const char *)plan + at;
}

static void lay_out(struct extension *e, uint64_t program_hash) {
    struct bfc_plan_header *header = &e->header;
    *header = *e->plan;
    header->program_hash = program_hash;
    header->prefix += e->lead;
    header->events += e->lead;
    header->anchors_at =
        plan_table_end(header->events_at, (uint64_t)header->events * sizeof(struct bfc_plan_event));
}

/* Adds the allocations before the loop as events without an address. Their lifetimes are not known,
 * so each gets one tick. */
static void add_lead(const struct extension *e, const struct plan_lead *lead) {
    struct bfc_plan_event *events = (void *)(e->bytes + e->header.events_at);
    struct bfc_plan_arena *arenas = (void *)(e->bytes + e->header.arenas_at);
    for (uint32_t i = 0; i < e->lead; i++) {
        const uint64_t birth = e->header.period_birth - e->lead + i;
        events[i] = (struct bfc_plan_event){.size = bfc_plan_round(lead->list[i].bytes),
                                            .birth = birth,
                                            .death = birth + 1,
                                            .row = i,
                                            .thread = lead->list[i].thread,
                                            .class_of = BFC_PLAN_UNPLANNED};
    }
    arenas[0].events += e->lead;
}

static void add_loop(const struct extension *e) {
    struct bfc_plan_event *events = (void *)(e->bytes + e->header.events_at);
    memcpy(events + e->lead, table_of(e->plan, e->plan->events_at),
           e->plan->events * sizeof *events);
    for (uint32_t i = e->lead; i < e->header.events; i++)
        events[i].row += e->lead;
}

/* Copies the anchors of the loop, except those whose device, size and thread an allocation before
 * the loop has too: a job would take that allocation for the anchor. */
static bool add_anchors(struct extension *e, const struct plan_lead *lead) {
    struct bfc_plan_anchor *to = (void *)(e->bytes + e->header.anchors_at);
    const struct bfc_plan_arena *arenas = table_of(e->plan, e->plan->arenas_at);
    bool *resembled = calloc((size_t)e->plan->anchors + 1, sizeof *resembled);
    for (uint32_t i = 0; resembled && i < e->lead; i++) {
        const uint64_t token = bfc_plan_token(arenas[0].device, bfc_plan_round(lead->list[i].bytes),
                                              lead->list[i].thread);
        const struct bfc_plan_anchor *anchor =
            bfc_plan_find_anchor(e->anchors, e->plan->anchors, token);
        if (anchor)
            resembled[anchor - e->anchors] = true;
    }
    e->header.anchors = 0;
    for (uint32_t i = 0; resembled && lead && i < e->plan->anchors; i++)
        if (!resembled[i])
            to[e->header.anchors++] =
                (struct bfc_plan_anchor){e->anchors[i].token, e->anchors[i].event + e->lead, 0};
    free(resembled);
    return resembled;
}

bool plan_with_lead(struct file_text *text, const struct bfc_plan_header *plan,
                    const struct plan_lead *lead, uint64_t program_hash, struct plan_error *error) {
    struct extension e = {
        .plan = plan, .anchors = table_of(plan, plan->anchors_at), .lead = lead ? lead->count : 0};
    lay_out(&e, program_hash);
    const uint64_t most =
        plan_table_end(e.header.anchors_at, plan->anchors * sizeof(struct bfc_plan_anchor));
    e.bytes = calloc(1, most);
    if (!e.bytes)
        return plan_fail_memory(error);
    memcpy(e.bytes + e.header.arenas_at, table_of(plan, plan->arenas_at),
           plan->arenas * sizeof(struct bfc_plan_arena));
    add_lead(&e, lead);
    add_loop(&e);
    if (!add_anchors(&e, lead)) {
        free(e.bytes);
        return plan_fail_memory(error);
    }
    e.header.file_bytes =
        plan_table_end(e.header.anchors_at, e.header.anchors * sizeof(struct bfc_plan_anchor));
    plan_seal(e.bytes, &e.header);
    *text = (struct file_text){(char *)e.bytes, e.header.file_bytes};
    return true;
}

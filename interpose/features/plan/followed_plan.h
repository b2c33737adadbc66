/*
 * Following a plan (layout/plan.h): the allocations of a loop get the addresses that were planned
 * for them, in one stretch of device memory of the planned peak.
 *
 * A plan is a hint. It is followed by what can be seen (order, size, device, thread), and a planned
 * place is used only if all of it is free, and ready or handed out behind its fence like any pooled
 * block. What the plan does not foresee is served by the pool. Where the plan's memory cannot be
 * had the job runs without, and what nobody uses of it serves others, or goes back to the device if
 * nobody uses any, before an allocation fails. So a plan causes an out of memory only where a block
 * in its region splits what one allocation needs.
 *
 * An arena follows at most one plan at a time.
 */
#ifndef BFC_INTERPOSE_PLAN_H
#define BFC_INTERPOSE_PLAN_H

#include "interpose/arena/state.h"
#include "layout/plan.h"
#include "planner/image/lead.h"

/* A plan in memory: the bytes of a plan file, and where its tables are in them. */
struct bfc_plan {
    const struct bfc_plan_header *header; /* the bytes begin here, at a multiple of 64 */
    const struct bfc_plan_arena *arenas;
    const struct bfc_plan_event *events;
    const struct bfc_plan_anchor *anchors;
    bool automatic;               /* made in this job (BFC_PLAN=auto), not of a file */
    const struct plan_lead *lead; /* then, what came before its loop; NULL: not known */
};

enum { BFC_PLAN_WHY = 160 };

/*
 * Checks the bytes of a plan and points into them; they must stay as long as anybody follows it.
 * False: `why` says in a few words why it cannot be followed (damaged, foreign, contradicting
 * itself, two blocks in one place at a time...). O(events log events); not for a hot path.
 */
bool bfc_plan_read(struct bfc_plan *plan, const void *bytes, uint64_t size, char why[BFC_PLAN_WHY]);

/*
 * From the arena's next allocation on, follows the plan, beginning at this event of it (of all
 * devices and threads: those that this arena or the calling threads do not have are passed over).
 * The plan must live as long as the arena. An arena that follows another plan leaves that; one that
 * it followed before is taken up again at no cost but the way back. What was not foreseen is given
 * a thought for some milliseconds. False, and all stays as it was: no event of the plan is of the
 * arena's device, or the host has no memory. Thread-safe; makes no call of the driver.
 */
bool bfc_plan_follow(struct bfc_arena *arena, const struct bfc_plan *plan, uint32_t event);

/* Goes on without a plan: what the plan's memory has free serves everybody. Thread-safe; makes no
 * call of the driver. */
void bfc_plan_leave(struct bfc_arena *arena);

/* Gives all idle regions back but the plan's own; returns how many bytes went. For the library's
 * own threads: it may call the driver, and wait for work. */
uint64_t bfc_plan_trim_replaced(struct bfc_arena *arena);

/* Looks up for a while where what the plan does not foresee may lie, so that no call of the program
 * has to. False: nothing is left to do. For one of the library's own threads at a time; no call of
 * the driver. */
bool bfc_plan_look_ahead(struct bfc_arena *arena);

/*
 * As struct bfc_feature has them. With BFC_PLAN=FILE the first arena of each device follows the
 * plan before it is published, so that no thread allocates in it before.
 */
extern unsigned bfc_plan_slot;
void bfc_plan_begin(const struct bfc_driver *driver, struct bfc_arena *arena,
                    struct bfc_upstream *upstream);
void bfc_plan_arena_publishing(struct bfc_arena *made);
void bfc_plan_arena_published(struct bfc_arena *published, bool is_ours);
void bfc_plan_forget(struct bfc_arena *arena);

bool bfc_plan_is_followed(const struct bfc_arena *arena);

/* What the arena follows or last followed; but rather a plan of the job's own of which it is known
 * how the job came there. NULL: nothing so far. It lives as long as the arena. Thread-safe. */
const struct bfc_plan *bfc_plan_best_known(const struct bfc_arena *arena);

/* Answers a reader who wants the plans of this process (BFC_PLAN_ANSWER): one for each context
 * that has one, for the next run. Nothing is written where there is none. The helper thread's. */
void bfc_plan_take_out(void);

/* Whether BFC_PLAN=auto. */
bool bfc_plan_is_automatic(void);

#endif

/*
 * Follows a plan (layout/plan.h): the allocations of a loop get the addresses that were planned for
 * them, in one range of device memory as large as the planned peak.
 *
 * A plan is a hint. Allocations are matched with it by their order, size, device and thread, and a
 * planned place is used only if all of it is free, and either ready or handed out behind its fence
 * like any pooled block. What the plan does not foresee is served by the pool. If the plan's memory
 * cannot be reserved, the job runs without it; unused parts of it serve other allocations, or go
 * back to the device, before an allocation fails. So a plan causes an out of memory only where a
 * block in the plan's region splits free memory that an allocation needs in one piece.
 *
 * An arena follows at most one plan at a time.
 */
#ifndef BFC_INTERPOSE_PLAN_H
#define BFC_INTERPOSE_PLAN_H

#include "interpose/arena/state.h"
#include "layout/plan.h"
#include "planner/image/lead.h"

/* The bytes of a plan file in memory, and where its tables are in them. */
struct bfc_plan {
    struct file_text text;                /* the plan file's bytes, to be freed by file_free */
    const struct bfc_plan_header *header; /* the plan's header, at the start of `text` */
    const struct bfc_plan_arena *arenas;
    const struct bfc_plan_event *events;
    const struct bfc_plan_anchor *anchors;
    bool automatic; /* whether this job made the plan; false: it was read from a file */
    /* the allocations before the loop of an automatic plan; NULL: not known */
    const struct plan_lead *lead;
};

/*
 * Checks the bytes of a plan and takes them over; `plan` then points into them. False: they are
 * freed, and `error` says why the plan cannot be followed: it is damaged, of another version,
 * contradicts itself, has two blocks in one place at a time, and so on. O(events log events); not
 * for a hot path.
 */
bool bfc_plan_read(struct bfc_plan *plan, struct file_text *text, struct plan_error *error);

/* Whether no two blocks of a valid plan overlap in memory while both are live. O(events log
 * events). */
bool bfc_plan_is_apart(const struct bfc_plan *plan, struct plan_error *error);

/* From the arena's next allocation on, follows the plan: each thread begins with its first planned
 * allocation on the arena's device that is not before `event`. The plan must live as long as the
 * arena. An arena that follows another plan leaves it first; following a plan again reuses its
 * tables. False, and nothing has changed: no event of the plan is of the arena's device, or the
 * host has no memory. One thread of an arena at a time; makes no call of the driver. */
bool bfc_plan_follow(struct bfc_arena *arena, const struct bfc_plan *plan, uint32_t event);

/* Stops following the plan: from now on the free part of the plan's memory serves every allocation.
 * Thread-safe; calls no driver. */
void bfc_plan_leave(struct bfc_arena *arena);

/* Gives all idle regions but the plan's back to the driver; returns their bytes. It may wait for
 * work of the device, so only the library's own threads call it. */
uint64_t bfc_plan_trim_replaced(struct bfc_arena *arena);

/* Looks up, for some milliseconds, where allocations fit that the plan does not foresee (gaps.h),
 * so that no call of the program has to. False: nothing is left to look up. One of the library's
 * own threads at a time; makes no call of the driver. */
bool bfc_plan_look_ahead(struct bfc_arena *arena);

/* The four functions below are called through struct bfc_feature. With BFC_PLAN=FILE the first
 * arena of each device begins to follow the plan before other threads can find the arena, so that
 * none of them allocates from it first. */
extern unsigned bfc_plan_slot;
void bfc_plan_begin(const struct bfc_driver *driver, struct bfc_arena *arena,
                    struct bfc_upstream *upstream);
void bfc_plan_arena_publishing(struct bfc_arena *made);
void bfc_plan_arena_published(struct bfc_arena *published, bool is_ours);
void bfc_plan_forget(struct bfc_arena *arena);

bool bfc_plan_is_followed(const struct bfc_arena *arena);

/* Returns the plan that the arena follows or followed last. A plan of which the allocations before
 * the loop (`lead`) are known is preferred. NULL: the arena has followed none. The plan lives as
 * long as the arena. Thread-safe. */
const struct bfc_plan *bfc_plan_best_known(const struct bfc_arena *arena);

/* Writes plans of this process for a reader that requested them (BFC_PLAN_ANSWER): for each context
 * the plan that bfc_plan_best_known returns. Writes nothing if there is none. For the helper
 * thread. */
void bfc_plan_take_out(void);

bool bfc_plan_is_automatic(void); /* whether BFC_PLAN is auto */

/* The plan of BFC_PLAN=FILE, which is read once a process. NULL: no file is named, or it was
 * refused, which was logged. Thread-safe. */
const struct bfc_plan *bfc_plan_of_file(void);

/* Starts learning what the program does in the arena, if BFC_PLAN=auto (learn/learn.c). With
 * BFC_PLAN=FILE nothing is learned, but the learning thread gives back idle memory outside the
 * plan. Thread-safe. */
void bfc_learn_begin(struct bfc_arena *arena);

#endif

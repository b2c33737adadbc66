/* Whether a plan puts two blocks in one place at a time. */
#ifndef BFC_INTERPOSE_OVERLAP_H
#define BFC_INTERPOSE_OVERLAP_H

#include "interpose/features/plan/followed_plan.h"

enum bfc_overlap { BFC_OVERLAP_NONE, BFC_OVERLAP_FOUND, BFC_OVERLAP_NO_HOST_MEMORY };

/* Of a plan whose numbers were checked one by one. O(events log events). */
enum bfc_overlap bfc_plan_find_overlap(const struct bfc_plan *plan);

#endif

/* The plan of BFC_PLAN=FILE, read once a process. */
#ifndef BFC_INTERPOSE_PLAN_FILE_H
#define BFC_INTERPOSE_PLAN_FILE_H

#include "interpose/features/plan/followed_plan.h"

/* The plan; NULL: no file is named, or it was refused, in one line. Thread-safe. */
const struct bfc_plan *bfc_plan_of_file(void);

#endif

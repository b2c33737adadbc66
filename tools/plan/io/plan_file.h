/* Writes plans to files, which appear whole or not at all. */
#ifndef BFC_PLAN_PLAN_FILE_H
#define BFC_PLAN_PLAN_FILE_H

#include "planner/image/image.h"

bool plan_write(const struct plan_content *content, const char *path, struct plan_error *error);

#endif

/*
 * Errors of the planner: one line that names the file, the row and the reason. Functions that can
 * fail return false and fill in the error; their outputs are untouched.
 */
#ifndef BFC_PLAN_ERROR_H
#define BFC_PLAN_ERROR_H

#include <stdbool.h>

#include "base/compiler.h"

struct plan_error {
    char text[640];
};

/* Writes the message and returns false, so that callers can `return plan_fail(…)`. */
bool plan_fail(struct plan_error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/* Writes the message that the host has no memory, and returns false. */
bool plan_fail_memory(struct plan_error *error);

#endif

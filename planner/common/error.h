/*
 * Error messages of the planner: one line that names the file, the row and the reason. A function
 * of the planner that fails writes such a message and returns false. Unless it says otherwise, it
 * leaves its other outputs unchanged.
 */
#ifndef BFC_PLAN_ERROR_H
#define BFC_PLAN_ERROR_H

#include <stdbool.h>

#include "base/compiler.h"

struct plan_error {
    char text[640];
};

/* Writes the message and returns false, so that a caller can write `return plan_fail(…)`. */
bool plan_fail(struct plan_error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/* Writes the message that the host has no memory left, and returns false. */
bool plan_fail_memory(struct plan_error *error);

#endif

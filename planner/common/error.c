#include "planner/common/error.h"

#include <stdarg.h>
#include <stdio.h>

bool plan_fail(struct plan_error *error, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    /* The message may quote a file's text, so control characters are replaced: a newline would
     * split the message into two lines. */
    for (char *c = error->text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return false;
}

bool plan_fail_memory(struct plan_error *error) {
    return plan_fail(error, "the host has no memory left for the planner's tables");
}

/* Formats and filters messages for standard error. */
#include "interpose/config/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "interpose/host/quiet.h"

enum { LINE = 512, ALL_UP_TO = 8 };

/* atomic: points to the most detailed level that is written; NULL: the options are not read yet */
static const int *in_force;

void bfc_log_begin(const int *level) {
    bfc_store_release(&in_force, level);
}

bool bfc_log_shows(enum bfc_log_level level) {
    const int *most = bfc_load_acquire(&in_force);
    return most && *most >= (int)level;
}

/* Writes a message. If `number` is not 0, it is written at the message's end: how often the message
 * has occurred. */
static void log_text(const char *format, va_list arguments, unsigned number) {
    char line[LINE] = "bfcpreload: ";
    size_t used = strlen(line);
    int length = vsnprintf(line + used, sizeof line - used, format, arguments);
    used += length > 0 ? (size_t)length : 0;
    if (number && used < sizeof line)
        snprintf(line + used, sizeof line - used, " (number %u of this kind)", number);
    size_t end = strnlen(line, sizeof line - 1);
    line[end] = '\n';
    bfc_quiet_write(line, end + 1);
}

void bfc_log(int level, const char *format, ...) {
    va_list arguments;
    if (!bfc_log_shows((enum bfc_log_level)level))
        return;
    va_start(arguments, format);
    log_text(format, arguments, 0);
    va_end(arguments);
}

void bfc_log_repeated(int level, unsigned *seen, const char *format, ...) {
    va_list arguments;
    if (!bfc_log_shows((enum bfc_log_level)level))
        return;
    unsigned number = bfc_add_fetch_relaxed(seen, 1);
    if (number > ALL_UP_TO && (number & (number - 1)) != 0)
        return;
    va_start(arguments, format);
    log_text(format, arguments, number > ALL_UP_TO ? number : 0);
    va_end(arguments);
}

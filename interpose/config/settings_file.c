/* The settings files: found, checked and read line by line. */
#include "interpose/config/settings_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/compiler.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/host/scratch.h"

/* Some editors write these bytes at the start of a UTF-8 file. */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

#define MOST 65536u /* bytes; a settings file must be shorter */

struct reading {
    struct bfc_options *options;
    const struct bfc_settings_listener *listener;
    const char *path;
    unsigned line, errors;
    /* A file is read twice: first the lines that use former names of variables (true), then all
     * others (false), so that a present name overrides a former one. */
    bool former;
};

static void report_line(struct reading *reading, const char *format, ...) PRINTF_LIKE(2, 3);

static void report_line(struct reading *reading, const char *format, ...) {
    char line[512];
    va_list arguments;
    int used = snprintf(line, sizeof line, "bfcpreload: %.256s:", reading->path);
    if (reading->line)
        used += snprintf(line + used, sizeof line - (size_t)used, "%u:", reading->line);
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    va_end(arguments);
    reading->errors++;
    if (reading->listener->complain)
        reading->listener->complain(reading->listener->context, line);
}

/* Returns text[0..length) without blanks at both ends. Writes a NUL behind it. */
static char *trim_spaces(char *text, size_t length) {
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    text[length] = '\0';
    return text + strspn(text, " \t");
}

static void take_value(struct reading *reading, const struct bfc_option *option,
                       const char *value) {
    char accepted[160];
    bfc_option_describe(option, accepted, sizeof accepted);
    if (strcmp(option->name, "BFC_DEEPBIND") == 0)
        report_line(reading,
                    " BFC_DEEPBIND counts in the environment alone, since it is needed before"
                    " this file is read");
    else if (!bfc_option_set(reading->options, option, value))
        report_line(reading, " %s=%.64s is not accepted: expected %s%s", option->name, value,
                    accepted,
                    option->marks & BFC_OPTION_BINDING
                        ? "; unless it is set elsewhere, every call goes to the driver"
                        : "");
    else if (reading->listener->taken)
        reading->listener->taken(reading->listener->context, option, reading->path, reading->line);
}

static void report_unknown(struct reading *reading, const char *name) {
    const char *nearest = bfc_option_nearest(name);
    report_line(reading, " %.64s: no such variable%s%s%s", name,
                nearest ? "; did you mean " : "; bfcrun --help lists them", nearest ? nearest : "",
                nearest ? "?" : "");
}

/* Reads one line, and overwrites parts of `text`. A file is read twice; a line that is not
 * understood is reported in the first of the two passes only. */
static void read_line(struct reading *reading, char *text, size_t length) {
    char *name = trim_spaces(text, length), *equals = strchr(name, '=');
    if (*name == '\0' || *name == '#')
        return;
    char *value = equals ? trim_spaces(equals + 1, strlen(equals + 1)) : NULL;
    name = equals ? trim_spaces(name, (size_t)(equals - name)) : name;
    const struct bfc_option *option = equals ? bfc_option_find(name) : NULL;
    if (option && reading->former == (strcmp(option->name, name) != 0))
        take_value(reading, option, value);
    else if (!option && reading->former && !equals)
        report_line(reading, " '%.64s' is not NAME=value", name);
    else if (!option && reading->former)
        report_unknown(reading, name);
}

/* Replaces control characters, which would reach the terminal in a complaint, and NUL, which would
 * hide the rest of the line. */
static void make_printable(char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') || text[i] == 0x7f)
            text[i] = text[i] == '\r' && text[i + 1] == '\n' ? ' ' : '?';
}

/* Reads line by line. Each line is copied, since reading changes it and the file is read twice. */
static void read_lines(struct reading *reading, const char *text) {
    char line[1024];
    for (reading->line = 1; *text; reading->line++) {
        size_t length = strcspn(text, "\n");
        if (length < sizeof line) {
            memcpy(line, text, length);
            line[length] = '\0';
            read_line(reading, line, length);
        } else if (reading->former) {
            report_line(reading, " longer than %zu characters", sizeof line - 1);
        }
        text += length + (text[length] == '\n');
    }
}

/* Reads a whole file. Returns its length, or -1 with errno set (EFBIG: it is not shorter than
 * `size`). */
static ssize_t read_whole(int file, char *text, size_t size) {
    size_t used = 0;
    for (ssize_t got = 1; got != 0;) {
        got = read(file, text + used, size - used);
        if (got < 0 && errno != EINTR)
            return -1;
        used += got > 0 ? (size_t)got : 0;
        if (used == size) {
            errno = EFBIG;
            return -1;
        }
    }
    return (ssize_t)used;
}

static const char *find_objection(int file, bool only_own) {
    struct stat status;
    if (!bfc_file_status(file, &status) || !S_ISREG(status.st_mode))
        return " not a regular file";
    if (only_own && status.st_uid != geteuid() && status.st_uid != 0)
        return " belongs to another user: not read";
    return only_own && (status.st_mode & S_IWOTH) ? " everyone may write it: not read" : NULL;
}

static void read_open_file(struct reading *reading, int file, bool only_own, char *text) {
    const char *objection = find_objection(file, only_own);
    ssize_t length = objection ? 0 : read_whole(file, text, MOST);
    if (objection)
        report_line(reading, "%s", objection);
    else if (length < 0 && errno == EFBIG)
        report_line(reading, " larger than %u bytes", MOST - 1);
    else if (length < 0)
        report_line(reading, " cannot be read (error %d)", errno);
    if (length <= 0)
        return;
    text[length] = '\0';
    if (strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        memset(text, ' ', strlen(BYTE_ORDER_MARK));
    make_printable(text, (size_t)length);
    for (int pass = 0; pass < 2; pass++) {
        reading->former = pass == 0;
        read_lines(reading, text);
    }
}

/* Reads one settings file. With `only_own`, refuses a file that belongs to neither the effective
 * user nor root, or that everyone may write, since settings tell the library where to write files.
 * Returns the number of complaints. */
static unsigned read_file(struct bfc_options *options, const char *path, bool only_own,
                          const struct bfc_settings_listener *listener) {
    struct reading reading = {.options = options, .listener = listener, .path = path};
    int cancel = bfc_cancel_disable();
    int file = bfc_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (file >= 0) {
        char *text = bfc_scratch_begin(MOST + 1);
        if (text)
            read_open_file(&reading, file, only_own, text);
        bfc_scratch_end(text, MOST + 1);
        close(file);
    } else if (errno == EACCES && !only_own) {
        report_line(&reading, " permission denied");
    } else if (errno == ELOOP) {
        report_line(&reading, " links in a circle");
        /* other errors, such as a home folder that cannot be entered, count as a missing file */
    }
    bfc_cancel_restore(cancel);
    return reading.errors;
}

static const char *find_variable(char *const *environment, const char *name) {
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

bool bfc_user_settings(char *const *environment, char *path, size_t size) {
    const char *folder = find_variable(environment, "XDG_CONFIG_HOME"), *within = "";
    if (!folder || folder[0] != '/') {
        folder = find_variable(environment, "HOME");
        within = "/.config";
    }
    if (!folder || folder[0] != '/')
        return false;
    int length = snprintf(path, size, "%s%s/" BFC_USER_SETTINGS, folder, within);
    return length > 0 && (size_t)length < size;
}

unsigned bfc_settings_read(struct bfc_options *options, char *const *environment,
                           const struct bfc_settings_listener *listener) {
    unsigned errors = read_file(options, BFC_SYSTEM_SETTINGS, false, listener);
    char *path = bfc_scratch_begin(PATH_MAX);
    if (path && bfc_user_settings(environment, path, PATH_MAX))
        errors += read_file(options, path, true, listener);
    bfc_scratch_end(path, PATH_MAX);
    return errors;
}

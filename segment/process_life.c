#include "segment/process_life.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open_file.h"
#include "segment/name.h"

struct status {
    char state;
    unsigned long long threads, start_time;
};

/* Whether /proc is that of this process's pid namespace. A process may see the /proc of another
 * one, in which pids mean other processes. */
static bool proc_is_ours(void) {
    char text[16];
    ssize_t length = readlink("/proc/self", text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return atoi(text) == getpid();
}

/* Parses fields 3, 20 and 22 of /proc/PID/stat, which come after the last ')', since the process's
 * name in parentheses may contain any character. */
static bool parse_status(const char *text, struct status *status) {
    const char *field = strrchr(text, ')');
    return field && sscanf(field,
                           ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                           " %llu %*s %llu",
                           &status->state, &status->threads, &status->start_time) == 3;
}

static bool read_status(int32_t pid, struct status *status) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = proc_is_ours() ? bfc_open(path, O_RDONLY, 0) : -1;
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return parse_status(text, status);
}

uint64_t bfc_process_start_time(int32_t pid) {
    struct status status;
    return read_status(pid, &status) ? status.start_time : 0;
}

uint64_t bfc_time_namespace(void) {
    char text[32];
    ssize_t length = readlink("/proc/self/ns/time", text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    const char *number = strchr(text, '[');
    return number ? strtoull(number + 1, NULL, 10) : 0;
}

/* Whether the process has ended. If its first thread has ended while others still run, it also has
 * the state of a zombie, but then it has more than one thread. */
static bool is_zombie(const struct status *status) {
    return (status->state == 'Z' || status->state == 'X') && status->threads <= 1;
}

bool bfc_process_is_gone(int32_t pid, uint64_t start_time) {
    struct status status;
    if (bfc_pid_is_free(pid))
        return true;
    if (!read_status(pid, &status))
        return false;
    return is_zombie(&status) || (start_time && status.start_time != start_time);
}

#include "tools/plan/cli/import.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/plan/cli/command.h"
#include "tools/plan/common/whole_file.h"

#define IMPORTER "bfcplan-import"
#define MOST_PATH 4096

extern char **environ;

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

enum import_kind import_kind_of(const char *path) {
    if (ends_with(path, ".onnx"))
        return IMPORT_GRAPH;
    return ends_with(path, "buffer-assignment.txt") ? IMPORT_LIFETIMES : IMPORT_NONE;
}

/* Returns the path of the program bfcplan-import in the folder of this program; its name alone if
 * it is not there, so that it is searched for in PATH. */
static const char *find_importer(char path[MOST_PATH]) {
    const ssize_t length = readlink("/proc/self/exe", path, MOST_PATH - sizeof IMPORTER);
    if (length <= 0)
        return IMPORTER;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return IMPORTER;
    strcpy(slash + 1, IMPORTER);
    return access(path, X_OK) == 0 ? path : IMPORTER;
}

/* Starts bfcplan-import with its standard output going into the pipe. Returns 0, or why the program
 * could not be started, as a value of errno. */
static int start_importer(const char *file, const char *dimensions, const int pipe[2],
                          pid_t *child) {
    char place[MOST_PATH];
    const char *importer = find_importer(place);
    const char *arguments[] = {IMPORTER, "--dims", dimensions ? dimensions : "", "--", file, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
    const int reason =
        posix_spawnp(child, importer, &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return reason;
}

static bool collect_output(struct file_text *text, const char *path, int from, pid_t child,
                           struct plan_error *error) {
    char pipe_path[32];
    int status = 0;
    snprintf(pipe_path, sizeof pipe_path, "/dev/fd/%d", from);
    const bool read = file_read(text, pipe_path, error);
    close(from);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return read;
    if (read)
        file_free(text);
    error->text[0] = '\0';
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_FAILED)
        plan_fail(error, "%s: " IMPORTER " ended with status %d", path, status);
    return false;
}

bool import_read(struct file_text *text, const char *path, const char *dimensions,
                 struct plan_error *error) {
    int ends[2];
    pid_t child;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return plan_fail(error, "%s: no pipe can be made: %s", path, strerror(errno));
    const int reason = start_importer(path, dimensions, ends, &child);
    close(ends[1]);
    if (reason == 0)
        return collect_output(text, path, ends[0], child, error);
    close(ends[0]);
    return plan_fail(error, "%s: " IMPORTER ", which reads it, cannot be run: %s", path,
                     strerror(reason));
}

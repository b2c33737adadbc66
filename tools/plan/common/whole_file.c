#include "tools/plan/common/whole_file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"

/* The name of the temporary file of the open writer; NULL: there is none. A thread makes the file
 * and stores its name here while it holds the lock, so that a signal handler, which takes the lock
 * to remove the file, always finds the name if there is a file. A thread that holds the lock takes
 * no signals. So a handler in the same thread finds the lock free, and a handler in another thread
 * waits only for a few system calls. */
static const char *unfinished;
static bool locked; /* atomic: whether a thread holds the lock of `unfinished` */

static void take_lock(void) {
    while (bfc_exchange_acquire(&locked, true))
        ;
}

/* Blocks all signals in this thread, takes the lock, and returns which signals were blocked before.
 * (On Linux sigprocmask concerns only the calling thread.) */
static sigset_t lock_unfinished(void) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    take_lock();
    return before;
}

static void unlock_unfinished(const sigset_t *before) {
    bfc_store_release(&locked, false);
    sigprocmask(SIG_SETMASK, before, NULL);
}

void file_drop_unfinished(void) {
    take_lock();
    if (unfinished)
        unlink(unfinished);
}

static void end_by_signal(int number) {
    file_drop_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

void file_drop_at_signals(void) {
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = end_by_signal}, before;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

static void free_temporary(struct file_writer *writer) {
    const sigset_t before = lock_unfinished();
    unfinished = NULL;
    unlock_unfinished(&before);
    free(writer->temporary);
    writer->temporary = NULL;
}

static bool grow_text(struct file_text *text, size_t *room) {
    const size_t more = *room < 65536 ? 65536 : *room * 2;
    char *bytes = realloc(text->bytes, more + 1);
    if (!bytes)
        return false;
    text->bytes = bytes;
    *room = more;
    return true;
}

static bool read_all(struct file_text *text, FILE *stream, size_t room) {
    for (;;) {
        if (text->size == room && !grow_text(text, &room))
            return false;
        const size_t got = fread(text->bytes + text->size, 1, room - text->size, stream);
        text->size += got;
        if (got == 0)
            break;
    }
    text->bytes[text->size] = '\0';
    return true;
}

bool file_read(struct file_text *text, const char *path, struct plan_error *error) {
    struct file_text result = {NULL, 0};
    const bool standard = strcmp(path, "-") == 0;
    struct stat about;
    FILE *stream = standard ? stdin : fopen(path, "rbe");
    if (!stream)
        return plan_fail(error, "%s: cannot be read: %s", path, strerror(errno));
    errno = 0;
    size_t room = 0;
    if (fstat(fileno(stream), &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        room = (size_t)about.st_size + 1;
        result.bytes = malloc(room + 1);
        if (!result.bytes)
            room = 0;
    }
    const bool whole = read_all(&result, stream, room);
    const bool failed = ferror(stream) != 0;
    const int reason = errno;
    if (!standard)
        fclose(stream);
    if (whole && !failed) {
        *text = result;
        return true;
    }
    free(result.bytes);
    return failed ? plan_fail(error, "%s: cannot be read: %s", path, strerror(reason))
                  : plan_fail(error, "%s: does not fit into the host's memory", path);
}

/* Whether another file may be renamed to this path. A device or pipe must not be replaced, because
 * the output is to go into it. */
static bool is_replaceable(const char *path) {
    struct stat about;
    return lstat(path, &about) != 0 || S_ISREG(about.st_mode);
}

static FILE *open_temporary(struct file_writer *writer) {
    if (asprintf(&writer->temporary, "%s.XXXXXX", writer->path) < 0) {
        writer->temporary = NULL;
        return NULL;
    }
    const sigset_t before = lock_unfinished();
    const int descriptor = mkostemp(writer->temporary, 02000000 /* the value of O_CLOEXEC */);
    unfinished = descriptor < 0 ? NULL : writer->temporary;
    unlock_unfinished(&before);
    if (descriptor < 0)
        return NULL;
    const mode_t mask = umask(0);
    umask(mask);
    (void)!fchmod(descriptor, 0666 & ~mask);
    return fdopen(descriptor, "wb");
}

bool file_open(struct file_writer *writer, const char *path, struct plan_error *error) {
    *writer = (struct file_writer){NULL, path, NULL};
    if (strcmp(path, "-") == 0)
        return plan_fail(error, "-: it stands for standard input alone: name a file to write (./- "
                                "for one of that name)");
    writer->stream = is_replaceable(path) ? open_temporary(writer) : fopen(path, "wbe");
    if (!writer->stream) {
        const int reason = errno;
        free_temporary(writer);
        return plan_fail(error, "%s: cannot be written: %s", path, strerror(reason));
    }
    return true;
}

void file_abandon(struct file_writer *writer) {
    if (writer->stream)
        fclose(writer->stream);
    if (writer->temporary)
        unlink(writer->temporary);
    free_temporary(writer);
    *writer = (struct file_writer){NULL, NULL, NULL};
}

/* Tries to make the temporary file and discards it. A device or pipe is not even opened, because a
 * pipe can be opened only once. */
bool file_check_output(const char *path, struct plan_error *error) {
    struct file_writer writer;
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return plan_fail(error, "%s: cannot be written: %s", path, strerror(EISDIR));
    if (!is_replaceable(path))
        return true;
    if (!file_open(&writer, path, error))
        return false;
    file_abandon(&writer);
    return true;
}

bool file_close(struct file_writer *writer, struct plan_error *error) {
    const char *path = writer->path;
    bool good = ferror(writer->stream) == 0;
    errno = 0;
    good = fflush(writer->stream) == 0 && good;
    int reason = errno;
    /* If an earlier write has failed, its error number is lost. Another write fails for the same
     * reason and sets errno again. */
    if (!good && !reason && write(fileno(writer->stream), "", 1) < 0)
        reason = errno;
    good = fclose(writer->stream) == 0 && good;
    writer->stream = NULL;
    if (good && writer->temporary && rename(writer->temporary, path) != 0) {
        reason = errno;
        good = false;
    }
    if (good) {
        free_temporary(writer);
        return true;
    }
    file_abandon(writer);
    return plan_fail(error, "%s: cannot be written: %s", path,
                     reason != 0 ? strerror(reason) : "only a part was written");
}

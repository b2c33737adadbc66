/* Descriptors that are closed, used for something else, or lead nowhere. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/surroundings/scene.h"

/* ---- broken and full pipes ---- */

static void break_pipe(int descriptor, bool socket) {
    int ends[2];
    must(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 : pipe(ends) == 0, "a pipe");
    must(dup2(ends[1], descriptor) == descriptor, "dup2");
    close(ends[0]);
    close(ends[1]);
}

/* Standard error is broken from the program's start on: as after a reader of `2>&1 | head`. */
static void start_again_without_reader(bool socket) {
    if (getenv("BROKEN"))
        return;
    setenv("BROKEN", "1", 1);
    break_pipe(STDERR_FILENO, socket);
    execl("/proc/self/exe", "scene", socket ? "broken-socket" : "broken-pipe", (char *)NULL);
    skip("no exec here");
}

static void run_broken_pipe(void) {
    start_again_without_reader(false);
    setenv("BFC_SUMMARY", "1", 1);
    work();
}

static void run_broken_socket(void) {
    start_again_without_reader(true);
    work();
}

static void run_broken_later(void) {
    begin();
    use_memory();
    break_pipe(STDOUT_FILENO, false);
    break_pipe(STDERR_FILENO, false);
    work();
}

/* What the program itself holds back stays; what we caused does not show. */
static void run_pending(void) {
    sigset_t pipe_alone, pending;
    siginfo_t info;
    int ends[2];
    sigemptyset(&pipe_alone);
    sigaddset(&pipe_alone, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_alone, NULL);
    break_pipe(STDOUT_FILENO, false);
    break_pipe(STDERR_FILENO, false);
    work();
    sigpending(&pending);
    report("pending after ours: %d", sigismember(&pending, SIGPIPE));
    must(pipe(ends) == 0, "a pipe");
    close(ends[0]);
    must(write(ends[1], "x", 1) < 0 && errno == EPIPE, "a broken pipe");
    run_out();
    sigpending(&pending);
    report("pending of its own: %d", sigismember(&pending, SIGPIPE));
    report("taken: %d", sigtimedwait(&pipe_alone, &info, &(struct timespec){0}));
    report("and again: %d", sigtimedwait(&pipe_alone, &info, &(struct timespec){0}));
}

static void run_full_pipe(void) {
    char bytes[4096] = {0};
    int ends[2];
    if (!getenv("FULL")) {
        setenv("FULL", "1", 1);
        must(pipe2(ends, O_NONBLOCK) == 0, "a pipe");
        while (write(ends[1], bytes, sizeof bytes) > 0)
            ;
        fcntl(ends[1], F_SETFL, 0);
        dup2(ends[1], STDERR_FILENO);
        execl("/proc/self/exe", "scene", "full-pipe", (char *)NULL);
        skip("no exec here");
    }
    work();
    report("went on");
}

/* ---- descriptor 2 is something else ---- */

static const char *path_of(const char *name) {
    static char path[4096];
    strcpy(path, getenv("FOLDER"));
    strcat(path, "/");
    strcat(path, name);
    return path;
}

static void report_size(const char *what, int descriptor) {
    struct stat status;
    must(fstat(descriptor, &status) == 0, "fstat");
    report("%s: %lld bytes", what, (long long)status.st_size);
}

static void reuse_for_file(int flags) {
    close(STDERR_FILENO);
    int file = open(path_of("database"), O_RDWR | O_CREAT | flags, 0600);
    must(file == STDERR_FILENO, "descriptor 2 is used again");
}

static void run_reused_first(void) {
    reuse_for_file(0);
    work();
    report_size("database", STDERR_FILENO);
}

static void run_reused_later(void) {
    begin();
    use_memory();
    reuse_for_file(O_APPEND);
    work();
    report_size("database", STDERR_FILENO);
}

static void run_reused_in_two(void) {
    close(STDOUT_FILENO);
    int second = open(path_of("log"), O_WRONLY | O_CREAT, 0600);
    must(second == STDOUT_FILENO, "descriptor 1 is used again");
    reuse_for_file(O_CLOEXEC);
    work();
    report_size("database", STDERR_FILENO);
    report_size("log", second);
}

static void run_reused_for_socket(void) {
    int ends[2];
    close(STDERR_FILENO);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0 && ends[0] == 2, "sockets");
    work();
    char byte;
    report("the other end gets %d", (int)read(ends[1], &byte, 1));
}

/* Files without a kind of their own share one inode: an eventfd at 1 and one at 2 are not one file.
 */
static void run_reused_for_events(void) {
    uint64_t value = 0;
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    must(eventfd(7, EFD_NONBLOCK) == 1 && eventfd(9, EFD_NONBLOCK) == 2, "two counters");
    work();
    must(read(2, &value, sizeof value) == sizeof value, "the second counter");
    report("counts %llu", (unsigned long long)value);
}

/* Of a pipe at 1 and 2 both ends are one inode. */
static void run_reused_for_pipe(void) {
    int ends[2];
    char byte;
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    must(pipe2(ends, O_NONBLOCK) == 0 && ends[0] == 1 && ends[1] == 2, "a pipe at 1 and 2");
    work();
    report("the pipe holds %d", (int)read(1, &byte, 1));
}

/* ---- closed ---- */

static void report_closed(void) {
    for (int i = 0; i < 3; i++)
        report("%d: %s", i, fcntl(i, F_GETFD) < 0 ? "closed" : "open");
}

static void run_closed(void) {
    for (int i = 0; i < 3; i++)
        close(i);
    work();
    report_closed();
}

/* What another thread writes to a closed standard error meanwhile fails, as natively, and comes
 * into no file. */
static volatile bool over;
static int accepted;

static void *write_always(void *unused) {
    while (!over)
        for (int i = 0; i < 3; i++)
            if (write(i, "the program's text\n", 19) >= 0)
                __atomic_add_fetch(&accepted, 1, __ATOMIC_RELAXED);
    return unused;
}

static void run_closed_and_written(void) {
    pthread_t thread;
    setenv("BFC_RECORD", path_of("trace"), 1);
    begin(); /* the driver's own files are not ours to guard */
    for (int i = 0; i < 3; i++)
        close(i);
    must(pthread_create(&thread, NULL, write_always, NULL) == 0, "a thread");
    for (int i = 0; i < 20; i++) {
        use_memory();
        run_out();
    }
    over = true;
    pthread_join(thread, NULL);
    report("accepted: %d", accepted);
}

static void close_all(void) {
    must(syscall(SYS_close_range, 0, ~0u, 0) == 0, "close_range");
}

static void run_all_closed_first(void) {
    close_all();
    work();
    report_closed();
}

static void run_all_closed_later(void) {
    begin();
    close_all();
    use_memory();
    close_all();
    run_out();
    close_all();
    use_memory();
    report_closed();
}

/* While its trace is written. */
static void run_all_closed_recording(void) {
    setenv("BFC_RECORD", path_of("trace"), 1);
    work();
    for (int i = 0; i < 200; i++) {
        close_all();
        use_memory();
    }
}

static void run_all_closed_always(void) {
    work();
    for (int i = 0; i < 50; i++) {
        close_all();
        use_memory();
        report("next: %d", open("/dev/null", O_RDONLY));
    }
}

/* No descriptor of ours stays open between calls. */
static void run_count(void) {
    int count = 0;
    work();
    for (int i = 0; i < 1024; i++)
        count += fcntl(i, F_GETFD) >= 0;
    report("open: %d, next: %d", count, dup(0));
}

static const struct scene scenes[] = {
    {"broken-pipe", run_broken_pipe},
    {"broken-socket", run_broken_socket},
    {"broken-later", run_broken_later},
    {"pending", run_pending},
    {"full-pipe", run_full_pipe},
    {"reused-first", run_reused_first},
    {"reused-later", run_reused_later},
    {"reused-in-two", run_reused_in_two},
    {"reused-for-socket", run_reused_for_socket},
    {"reused-for-events", run_reused_for_events},
    {"reused-for-pipe", run_reused_for_pipe},
    {"closed", run_closed},
    {"closed-and-written", run_closed_and_written},
    {"all-closed-first", run_all_closed_first},
    {"all-closed-later", run_all_closed_later},
    {"all-closed-always", run_all_closed_always},
    {"all-closed-recording", run_all_closed_recording},
    {"count", run_count},
};

int main(int argc, char **argv) {
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof *scenes);
}

/* System calls that raise no signal in the program, and writing to standard error. */
#include "interpose/host/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/shared_folder.h"

#define TIMEOUT_MS 100 /* how long to wait until standard error accepts text */

static const int raised_by_calls[] = {SIGPIPE, SIGXFSZ, SIGTTOU};

/* sigprocmask is used, since pthread_sigmask would need glibc 2.32; in Linux both change only the
 * calling thread's mask */
void bfc_quiet_begin(struct bfc_quiet *quiet) {
    sigset_t held;
    quiet->cancel = bfc_cancel_disable();
    sigemptyset(&held);
    for (unsigned i = 0; i < sizeof raised_by_calls / sizeof *raised_by_calls; i++)
        sigaddset(&held, raised_by_calls[i]);
    sigprocmask(SIG_BLOCK, &held, &quiet->mask);
    sigpending(&quiet->pending);
}

/* Consumes the signals that the library's system calls have raised in this thread. If the same
 * signal was sent to the whole process meanwhile, that one stays pending, since the kernel delivers
 * a thread's own signals first. */
void bfc_quiet_end(const struct bfc_quiet *quiet) {
    const struct timespec at_once = {0};
    int reason = errno;
    sigset_t pending, one;
    sigpending(&pending);
    for (unsigned i = 0; i < sizeof raised_by_calls / sizeof *raised_by_calls; i++) {
        int number = raised_by_calls[i];
        if (!sigismember(&pending, number) || sigismember(&quiet->pending, number))
            continue;
        sigemptyset(&one);
        sigaddset(&one, number);
        sigtimedwait(&one, NULL, &at_once);
    }
    sigprocmask(SIG_SETMASK, &quiet->mask, NULL);
    bfc_cancel_restore(quiet->cancel);
    errno = reason;
}

static dev_t first_device;
static ino_t first_inode;
static bool was_open;

/* Calls fstat without the C library: at the start of every process, looking the function up would
 * cost some 900 instructions, and looking errno up as many again. */
static long call_fstat(long file, struct stat *status) {
#if defined(__x86_64__)
    long result = SYS_fstat;
    __asm__ volatile("syscall" : "+a"(result) : "D"(file), "S"(status) : "rcx", "r11", "memory");
    return result;
#else
    register long result __asm__("x0") = file;
    register struct stat *to __asm__("x1") = status;
    register long number __asm__("x8") = SYS_fstat;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(to), "r"(number) : "memory");
    return result;
#endif
}

/* Remembers which file descriptor 2 is when the process starts, the only time at which it is
 * certainly standard error. Costs one system call. */
__attribute__((constructor)) static void remember_standard_error(void) {
    struct stat status;
    was_open = call_fstat(STDERR_FILENO, &status) == 0;
    if (!was_open)
        return;
    first_device = status.st_dev;
    first_inode = status.st_ino;
}

/* Whether files of this type have inodes of their own, by which they are told apart. All event
 * counters (eventfd), for example, share one inode. */
static bool has_kind(const struct stat *status) {
    return S_ISREG(status->st_mode) || S_ISCHR(status->st_mode) || S_ISFIFO(status->st_mode) ||
           S_ISSOCK(status->st_mode);
}

/* Whether the program seems to have put both standard streams on one file with dup2, such as a log:
 * descriptors 1 and 2 are the same file, opened in the same mode, and inherited by children. (The
 * two ends of a pipe are the same file, too, but their modes differ.) */
static bool is_standard_output(const struct stat *status) {
    struct stat output;
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    return bfc_file_status(STDOUT_FILENO, &output) && output.st_dev == status->st_dev &&
           output.st_ino == status->st_ino && flags >= 0 && (flags & O_ACCMODE) != O_RDONLY &&
           fcntl(STDOUT_FILENO, F_GETFL) == flags && fcntl(STDERR_FILENO, F_GETFD) == 0 &&
           fcntl(STDOUT_FILENO, F_GETFD) == 0;
}

/* Whether descriptor 2 is the standard error that the program was started with, or a file that the
 * program has put on both standard streams. Any other file only has the number 2 by chance, and
 * must not be written to. */
static bool is_standard_error(void) {
    struct stat status;
    if (!bfc_file_status(STDERR_FILENO, &status) || !has_kind(&status))
        return false;
    if (was_open && status.st_dev == first_device && status.st_ino == first_inode)
        return true;
    return is_standard_output(&status);
}

/* Whether standard error accepts text. A pipe that nobody reads, or a stopped terminal, would delay
 * the program. So once a line was not accepted, later lines are not waited for until one is
 * accepted at once. */
static bool takes_text(void) {
    static bool stuck; /* atomic: whether the last line was not accepted */
    struct pollfd standard_error = {.fd = STDERR_FILENO, .events = POLLOUT};
    poll(&standard_error, 1, bfc_load_relaxed(&stuck) ? 0 : TIMEOUT_MS);
    bool takes = (standard_error.revents & (POLLOUT | POLLERR | POLLHUP)) == POLLOUT;
    bfc_store_relaxed(&stuck, !takes);
    return takes;
}

void bfc_quiet_write(const char *text, size_t size) {
    struct bfc_quiet quiet;
    int reason = errno, cancel = bfc_cancel_disable();
    if (is_standard_error() && takes_text()) {
        bfc_quiet_begin(&quiet);
        /* One call writes the whole text, so that lines of several processes do not mix. If the
         * call fails, nothing can be done. */
        ssize_t written = write(STDERR_FILENO, text, size);
        (void)written;
        bfc_quiet_end(&quiet);
    }
    bfc_cancel_restore(cancel);
    errno = reason;
}

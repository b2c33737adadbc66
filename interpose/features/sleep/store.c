#include "interpose/features/sleep/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/numbers.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/host/quiet.h"

/* Returns the number that follows `name` in a small file; if `name` is empty, the number with which
 * the file begins. UINT64_MAX: there is no number, as where a control group's file says `max`. */
static uint64_t read_figure(const char *path, const char *name) {
    char text[2048];
    int file = bfc_open(path, O_RDONLY, 0);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, name);
    char *end;
    if (length <= 0 || !line)
        return UINT64_MAX;
    uint64_t figure = strtoull(line + strlen(name), &end, 10);
    return end == line + strlen(name) ? UINT64_MAX : figure;
}

/* Returns how many bytes of memory the host can still provide, by the kernel's estimate and the
 * limit of the control group. That limit is looked for only at the root of the file system for
 * control groups (version 2), where a container finds its own. */
static uint64_t host_available(void) {
    uint64_t available = read_figure("/proc/meminfo", "MemAvailable:");
    if (available < UINT64_MAX >> 10)
        available <<= 10;
    uint64_t most = read_figure("/sys/fs/cgroup/memory.max", "");
    uint64_t used = read_figure("/sys/fs/cgroup/memory.current", "");
    return most == UINT64_MAX || used == UINT64_MAX
               ? available
               : bfc_min(available, bfc_subtract_saturating(most, used));
}

/* Opens a file of host memory (memfd_create) for `bytes` bytes, if a sixteenth of the available
 * memory is left after that. The file's name appears in /proc alone. */
static int open_memory(uint64_t bytes, char *why, size_t size) {
    uint64_t available = host_available();
    if (available / 16 * 15 < bytes) {
        snprintf(why, size, "the host has %s of memory left for %s", BFC_BYTES(available),
                 BFC_BYTES(bytes));
        return -1;
    }
    int file = bfc_open_above((int)syscall(SYS_memfd_create, "bfcpreload", MFD_CLOEXEC));
    if (file < 0)
        snprintf(why, size, "no memory for the contents: %s", strerror(errno));
    return file;
}

/* Opens a file without a name in the folder. If the file system does not support O_TMPFILE, a file
 * with a name is opened, and the name is removed at once. */
static int open_nameless(const char *folder) {
    char path[300];
    int file = bfc_open(folder, O_TMPFILE | O_RDWR, 0600);
    if (file >= 0)
        return file;
    snprintf(path, sizeof path, "%s/.bfcpreload-sleep.%d", folder, getpid());
    file = bfc_open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR, 0600);
    if (file >= 0)
        unlink(path);
    return file;
}

static int open_in(const char *folder, char *why, size_t size) {
    int file = open_nameless(folder);
    if (file < 0)
        snprintf(why, size, "BFC_SLEEP_TO=%.60s: %s", folder, strerror(errno));
    return file;
}

static bool is_memory(const char *folder) {
    return !folder[0] || strcmp(folder, "memory") == 0;
}

int bfc_sleep_store_check(const char *folder) {
    struct stat status;
    if (is_memory(folder))
        return 0;
    if (!bfc_file_status_at(AT_FDCWD, folder, &status))
        return errno;
    if (!S_ISDIR(status.st_mode))
        return ENOTDIR;
    return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

int bfc_sleep_store_open(const char *folder, uint64_t bytes, char *why, size_t size) {
    return is_memory(folder) ? open_memory(bytes, why, size) : open_in(folder, why, size);
}

static bool is_zero(const char *bytes, size_t size) {
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static int write_all_at(int file, uint64_t at, const char *bytes, size_t size) {
    while (size) {
        ssize_t written = pwrite(file, bytes, size, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : ENOSPC;
        at += (uint64_t)written;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

/* Stores bytes that are all zero without writing them: a hole in the file reads as zero, so the
 * file only has to be long enough. */
static int leave_hole(int file, uint64_t end) {
    off_t length = lseek(file, 0, SEEK_END);
    bool fits = length >= 0 && ((uint64_t)length >= end || ftruncate(file, (off_t)end) == 0);
    return fits ? 0 : errno;
}

int bfc_sleep_store_flush(int file) {
    int result;
    do
        result = fdatasync(file);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

/* Flushes the file every FLUSH_EVERY bytes: one long flush at the end could not be interrupted. */
int bfc_sleep_store_write(int file, uint64_t at, const void *bytes, size_t size) {
    enum { FLUSH_EVERY = 64 << 20 };
    struct bfc_quiet quiet;
    bfc_quiet_begin(&quiet);
    int error =
        is_zero(bytes, size) ? leave_hole(file, at + size) : write_all_at(file, at, bytes, size);
    if (!error && at / FLUSH_EVERY != (at + size) / FLUSH_EVERY)
        error = bfc_sleep_store_flush(file);
    bfc_quiet_end(&quiet);
    return error;
}

int bfc_sleep_store_read(int file, uint64_t at, void *bytes, size_t size) {
    struct bfc_quiet quiet;
    int error = 0;
    char *to = bytes;
    bfc_quiet_begin(&quiet);
    while (size && !error) {
        ssize_t got = pread(file, to, size, (off_t)at);
        if (got > 0) {
            at += (uint64_t)got;
            to += got;
            size -= (size_t)got;
        } else if (got == 0) {
            error = EIO;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    bfc_quiet_end(&quiet);
    return error;
}

void bfc_sleep_store_close(int file) {
    if (file < 0)
        return;
    if (ftruncate(file, 0) != 0)
        errno = 0; /* if the file could not be emptied, closing its last descriptor frees the
                      contents */
    close(file);
}

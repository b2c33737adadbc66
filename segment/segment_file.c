#include "segment/segment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/open_file.h"
#include "base/shared_folder.h"

enum bfc_read_result bfc_segment_refuse(const struct bfc_segment_look *look, const char *format,
                                        ...) {
    if (look->reason_size == 0)
        return BFC_READ_REFUSED;
    int used = snprintf(look->reason, look->reason_size, "%s: ", look->name->text);
    va_list arguments;
    va_start(arguments, format);
    if (used >= 0 && (size_t)used < look->reason_size)
        vsnprintf(look->reason + used, look->reason_size - (size_t)used, format, arguments);
    va_end(arguments);
    return BFC_READ_REFUSED;
}

/* strerror may open and read a file of translated messages, so it is called only if the caller
 * wants the reason. */
static enum bfc_read_result refuse_errno(const struct bfc_segment_look *look) {
    return look->reason_size ? bfc_segment_refuse(look, "%s", strerror(errno)) : BFC_READ_REFUSED;
}

enum bfc_read_result bfc_segment_check_magic(const struct bfc_segment_look *look, uint64_t magic,
                                             uint32_t version) {
    if (magic == 0) {
        bfc_segment_refuse(look, "not ready: its job is still initializing it");
        return BFC_READ_YOUNG;
    }
    if (magic == __builtin_bswap64(BFC_SEGMENT_MAGIC))
        return bfc_segment_refuse(look, "written by a machine of the other byte order");
    if (magic != BFC_SEGMENT_MAGIC)
        return bfc_segment_refuse(
            look, "not a segment of bfcpreload (its first bytes are not the magic number)");
    if (version != BFC_SEGMENT_VERSION)
        return bfc_segment_refuse(look, "layout version %u; this program reads version %u", version,
                                  BFC_SEGMENT_VERSION);
    return BFC_READ_OK;
}

static bool is_terminated(const char *text, size_t size) {
    return memchr(text, '\0', size);
}

enum bfc_read_result bfc_segment_check_header(const struct bfc_segment_look *look,
                                              const struct bfc_segment_header *header) {
    const struct bfc_segment_name *name = look->name;
    if (header->header_size != sizeof *header || header->total_size != BFC_SEGMENT_SIZE ||
        header->pool_size != sizeof(struct bfc_segment_pool) ||
        header->pool_count != BFC_SEGMENT_POOLS)
        return bfc_segment_refuse(look, "damaged: its sizes are not those of layout version %u",
                                  BFC_SEGMENT_VERSION);
    if (header->pid != name->pid || header->uid != name->uid ||
        header->pid_namespace != name->pid_namespace)
        return bfc_segment_refuse(look, "damaged: its name is not that of the process in it");
    if (!is_terminated(header->command, sizeof header->command) ||
        !is_terminated(header->library, sizeof header->library) ||
        !is_terminated(header->job, sizeof header->job) ||
        !is_terminated(header->complaints, sizeof header->complaints) ||
        !is_terminated(header->gate.why, sizeof header->gate.why) ||
        !is_terminated(header->sleep.where, sizeof header->sleep.where) ||
        !is_terminated(header->sleep.why, sizeof header->sleep.why) ||
        !is_terminated(header->configuration, sizeof header->configuration))
        return bfc_segment_refuse(look, "damaged: a text in it is not terminated");
    return BFC_READ_OK;
}

static enum bfc_read_result refuse_size(const struct bfc_segment_look *look, off_t size) {
    return bfc_segment_refuse(look, "truncated: %lld bytes where %llu are expected",
                              (long long)size, (unsigned long long)BFC_SEGMENT_SIZE);
}

/*
 * Checks the version before the size, so that a segment of another version is not called truncated.
 */
static enum bfc_read_result check_beginning(const struct bfc_segment_look *look, int file,
                                            off_t size) {
    struct {
        uint64_t magic;
        uint32_t version, header_size;
    } beginning = {0};
    if (size == 0) {
        bfc_segment_refuse(look, "not ready: it is empty");
        return BFC_READ_YOUNG;
    }
    if (!bfc_segment_read_at(file, &beginning, sizeof beginning, 0))
        return refuse_size(look, size);
    enum bfc_read_result result = bfc_segment_check_magic(look, beginning.magic, beginning.version);
    if (result == BFC_READ_OK && size < (off_t)BFC_SEGMENT_SIZE)
        return refuse_size(look, size);
    return result;
}

static enum bfc_read_result check_file(const struct bfc_segment_look *look, int file) {
    struct stat status;
    if (!bfc_file_status(file, &status))
        return refuse_errno(look);
    if (!S_ISREG(status.st_mode))
        return bfc_segment_refuse(look, "not a regular file");
    if (status.st_uid != look->name->uid)
        return bfc_segment_refuse(look, "belongs to user %u, yet its name says user %u",
                                  (unsigned)status.st_uid, look->name->uid);
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        return bfc_segment_refuse(look, "users other than its owner may write it (mode %04o)",
                                  (unsigned)status.st_mode & 07777u);
    return check_beginning(look, file, status.st_size);
}

static enum bfc_read_result explain_absence(const struct bfc_segment_look *look, bool writable) {
    if (errno == ENOENT) {
        bfc_segment_refuse(look, "no such segment");
        return BFC_READ_ABSENT;
    }
    if (errno == EACCES)
        return bfc_segment_refuse(look, "belongs to user %u, who alone may %s it", look->name->uid,
                                  writable ? "write" : "read");
    if (errno == ELOOP)
        return bfc_segment_refuse(look, "a symbolic link, not a segment");
    return refuse_errno(look);
}

enum bfc_read_result bfc_segment_file_open(const struct bfc_segment_look *look, int directory,
                                           bool writable, int *file) {
    /* Without O_NONBLOCK the call would block on a fifo of that name. */
    int access = writable ? O_RDWR : O_RDONLY;
    *file = bfc_open_at(directory, look->name->text, access | O_NOFOLLOW | O_NONBLOCK, 0);
    if (*file < 0)
        return explain_absence(look, writable);
    enum bfc_read_result result = check_file(look, *file);
    if (result != BFC_READ_OK)
        close(*file);
    return result;
}

bool bfc_segment_read_at(int file, void *to, size_t size, uint64_t offset) {
    return pread(file, to, size, (off_t)offset) == (ssize_t)size;
}

void *bfc_segment_file_map(int file, bool writable) {
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *base = mmap(NULL, BFC_SEGMENT_SIZE, protection, MAP_SHARED, file, 0);
    return base == MAP_FAILED ? NULL : base;
}

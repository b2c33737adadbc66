/* Opens files with descriptors above those of the standard streams, and writes to files. */
#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FIRST_OWN_DESCRIPTOR 3

/* Opens a file while the free ones of the descriptors 0 to 2 are taken by dummies, which can be
 * neither read nor written, so that the file gets a descriptor above 2. Then closes the dummies. */
static int open_held(int directory, const char *path, int flags, mode_t mode) {
    int held[FIRST_OWN_DESCRIPTOR], count = 0, file = -1;
    while (count < FIRST_OWN_DESCRIPTOR && (held[count] = open("/", O_PATH | O_CLOEXEC)) >= 0 &&
           held[count] < FIRST_OWN_DESCRIPTOR)
        count++;
    if (count == FIRST_OWN_DESCRIPTOR || held[count] >= 0)
        file = openat(directory, path, flags | O_CLOEXEC, mode);
    int reason = errno;
    if (count < FIRST_OWN_DESCRIPTOR && held[count] >= 0)
        close(held[count]);
    while (count > 0)
        close(held[--count]);
    errno = reason;
    return file;
}

int bfc_open_at(int directory, const char *path, int flags, mode_t mode) {
    for (int i = 0; i < FIRST_OWN_DESCRIPTOR; i++)
        if (fcntl(i, F_GETFD) < 0)
            return open_held(directory, path, flags, mode);
    return openat(directory, path, flags | O_CLOEXEC, mode);
}

int bfc_open(const char *path, int flags, mode_t mode) {
    return bfc_open_at(AT_FDCWD, path, flags, mode);
}

int bfc_open_above(int file) {
    if (file < 0 || file >= FIRST_OWN_DESCRIPTOR)
        return file;
    int above = fcntl(file, F_DUPFD_CLOEXEC, FIRST_OWN_DESCRIPTOR), reason = errno;
    close(file);
    errno = reason;
    return above;
}

bool bfc_write_all(int file, const void *bytes, size_t size) {
    for (const char *at = bytes; size;) {
        ssize_t written = write(file, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

DIR *bfc_open_folder_at(int directory, const char *path) {
    int file = bfc_open_at(directory, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *folder = file < 0 ? NULL : fdopendir(file);
    if (!folder && file >= 0)
        close(file);
    return folder;
}

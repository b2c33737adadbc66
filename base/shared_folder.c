/* Tells which files in /dev/shm may be trusted. System calls are made by their numbers, because
 * glibc exports fstat and fstatat as symbols only since version 2.33. */
#include "base/shared_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t bfc_pid_namespace(void) {
    /* the link's target is like "pid:[4026531836]", with the inode number in the brackets */
    char text[64] = "";
    ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    const char *number = length > 0 ? strchr(text, '[') : NULL;
    return number ? strtoull(number + 1, NULL, 10) : 0;
}

bool bfc_file_status(int file, struct stat *status) {
    return syscall(SYS_fstat, file, status) == 0;
}

bool bfc_file_status_at(int directory, const char *name, struct stat *status) {
    return syscall(SYS_newfstatat, directory, name, status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool bfc_file_is_private(int file) {
    struct stat status;
    return bfc_file_status(file, &status) && S_ISREG(status.st_mode) && status.st_uid == getuid() &&
           (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

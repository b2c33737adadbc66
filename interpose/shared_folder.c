/* Who may be trusted in /dev/shm. */
#include "interpose/shared_folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t bfc_pid_namespace(void) {
    char text[64] = ""; /* "pid:[4026531836]", the inode number; stat would need glibc 2.33 */
    ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    const char *number = length > 0 ? strchr(text, '[') : NULL;
    return number ? strtoull(number + 1, NULL, 10) : 0;
}

bool bfc_file_is_private(int file) {
    struct stat status;
    return syscall(SYS_fstat, file, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == getuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

/* The folder in which processes of one user find each other's shared-memory files: that of
 * shm_open. */
#ifndef BFC_BASE_SHARED_FOLDER_H
#define BFC_BASE_SHARED_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define BFC_SHARED_FOLDER "/dev/shm"

/* Returns the inode number that identifies this process's pid namespace; 0: unknown. */
uint64_t bfc_pid_namespace(void);

/* Like fstat, and like lstat for a name in a directory, but also usable in programs with a C
 * library before glibc 2.33. False, with errno set, on failure. */
bool bfc_file_status(int file, struct stat *status);
bool bfc_file_status_at(int directory, const char *name, struct stat *status);

/* Whether the open file is a regular file of this user, which nobody else may read or write. */
bool bfc_file_is_private(int file);

#endif

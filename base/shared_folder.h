/* The folder in which processes of one user find each other's files: where shm_open puts them. */
#ifndef BFC_BASE_SHARED_FOLDER_H
#define BFC_BASE_SHARED_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define BFC_SHARED_FOLDER "/dev/shm"

/* This process's pid namespace (inode number); 0 when unknown. */
uint64_t bfc_pid_namespace(void);

/* fstat and lstat, for binaries that older C libraries load too. False with errno set. */
bool bfc_file_status(int file, struct stat *status);
bool bfc_file_status_at(int directory, const char *name, struct stat *status);

/* Whether an open file is a regular file of this user that nobody else may read or write. */
bool bfc_file_is_private(int file);

#endif

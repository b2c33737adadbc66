/* The folder in which processes of one user find each other's files: where shm_open puts them. */
#ifndef BFC_INTERPOSE_SHARED_FOLDER_H
#define BFC_INTERPOSE_SHARED_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#define BFC_SHARED_FOLDER "/dev/shm"

/* The pid namespace's inode number, or 0. */
uint64_t bfc_pid_namespace(void);

/* Whether an open file is a plain one of this user's that nobody else may read or write. */
bool bfc_file_is_private(int file);

#endif

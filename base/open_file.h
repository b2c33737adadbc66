/* Opens and writes files from inside a program that does not know about it. */
#ifndef BFC_BASE_OPEN_H
#define BFC_BASE_OPEN_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * openat(2) and open(2), close-on-exec, never with a descriptor below 3: if the program has closed
 * a standard stream and writes to it meanwhile, the write fails as without us. Returns -1 with
 * errno set on failure.
 */
int bfc_open_at(int directory, const char *path, int flags, mode_t mode);
int bfc_open(const char *path, int flags, mode_t mode);
/* Returns `file` if it is above the standard descriptors, else a copy that is, and closes `file`.
 * Returns -1 with errno set on failure. */
int bfc_open_above(int file);

/* write(2) until all of it is written. False: it is not, for the reason in errno. */
bool bfc_write_all(int file, const void *bytes, size_t size);

DIR *bfc_open_folder_at(int directory, const char *path);

#endif

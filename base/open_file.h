/* Opens and writes the library's own files, so that the program's descriptors are not disturbed. */
#ifndef BFC_BASE_OPEN_H
#define BFC_BASE_OPEN_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * As openat(2) and open(2), but close-on-exec, and never with a descriptor below 3. So a program
 * that has closed a standard stream and still writes to it never writes into the library's file:
 * its write fails, as it does without the library. Return -1 with errno set on failure.
 */
int bfc_open_at(int directory, const char *path, int flags, mode_t mode);
int bfc_open(const char *path, int flags, mode_t mode);
/* Returns `file` if it is above 2, the last standard descriptor. Otherwise returns a copy that is
 * above 2, and closes `file`; -1 with errno set on failure. */
int bfc_open_above(int file);

/* Calls write(2) until all bytes are written. False: errno says why some bytes are not. */
bool bfc_write_all(int file, const void *bytes, size_t size);

DIR *bfc_open_folder_at(int directory, const char *path);

#endif

/* Opens files from inside a program that does not know about it. */
#ifndef BFC_BASE_OPEN_H
#define BFC_BASE_OPEN_H

#include <dirent.h>
#include <sys/types.h>

/*
 * openat(2) and open(2), close-on-exec, never with a descriptor below 3: a write of the program to
 * a standard stream that it has closed still fails meanwhile, as without us. -1, with errno.
 */
int bfc_open_at(int directory, const char *path, int flags, mode_t mode);
int bfc_open(const char *path, int flags, mode_t mode);
DIR *bfc_open_folder_at(int directory, const char *path);

#endif

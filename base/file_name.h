/* Finds the last part of a path. */
#ifndef BFC_BASE_FILE_NAME_H
#define BFC_BASE_FILE_NAME_H

#include <string.h>

/* Returns a pointer to the part of `path` behind its last slash, or `path` itself if it has no
 * slash. Thread-safe. */
static inline const char *bfc_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif

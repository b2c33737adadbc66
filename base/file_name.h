/* The last part of a path. */
#ifndef BFC_BASE_FILE_NAME_H
#define BFC_BASE_FILE_NAME_H

#include <string.h>

/* What follows the last slash; all of a path without one. Points into `path`. Thread-safe. */
static inline const char *bfc_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif

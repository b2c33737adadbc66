/* Parses segments' names and lists a folder of segments. Thread-safe; allocates nothing but a
 * directory stream. */
#ifndef BFC_SEGMENT_NAME_H
#define BFC_SEGMENT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/segment.h"

#define BFC_SEGMENT_NAME_MAX 64u

/* The most entries of the shared folder that are read, since programs may have thousands of files
 * there. Reading this many takes some 20 ms. */
#define BFC_FOLDER_ENTRIES_MOST 65536

struct bfc_segment_name {
    char text[BFC_SEGMENT_NAME_MAX]; /* the file's name, without a slash */
    uint32_t uid;
    uint64_t pid_namespace;
    int32_t pid;
};

struct bfc_segment_name bfc_segment_name_of(uint32_t uid, uint64_t pid_namespace, int32_t pid);

/* Whether `text` is a segment's name; if so, `name` is set. */
bool bfc_segment_name_parse(const char *text, struct bfc_segment_name *name);

/* Opens a folder of segments for the functions below; -1 with errno set on failure. */
int bfc_segment_directory_open(const char *path);

typedef bool bfc_segment_name_visit(void *context, int directory,
                                    const struct bfc_segment_name *name);

/*
 * Calls `visit` for each segment among the directory's first `most` entries, until it returns
 * false. Returns false with errno set when the directory cannot be read.
 */
bool bfc_segment_names_visit(int directory, size_t most, bfc_segment_name_visit *visit,
                             void *context);

/* Whether no process of this pid namespace has this pid. */
bool bfc_pid_is_free(int32_t pid);

/* Whether a signal or a debugger has stopped the process. */
bool bfc_pid_is_stopped(int32_t pid);

/* Removes the segment and the files that its process wrote for readers (BFC_ANSWER_NAME_FORMAT),
 * where they are plain files of this user. Returns whether the segment was removed. */
bool bfc_segment_remove(int directory, const struct bfc_segment_name *name);

#endif

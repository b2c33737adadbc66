/*
 * Inside the segment's reader: a checked, guarded look at a mapped segment, for what reads it and
 * for what writes the request words.
 *
 * Thread-safety: as tools/segment_reader.h says of bfc_segment_read.
 */
#ifndef BFC_TOOLS_SEGMENT_FILE_H
#define BFC_TOOLS_SEGMENT_FILE_H

#include "tools/segment_reader.h"

struct reading {
    const struct bfc_segment_name *name;
    char *base; /* the mapped segment, BFC_SEGMENT_SIZE bytes */
    char *reason;
    size_t reason_size;
};

typedef enum bfc_read_result segment_visit(const struct reading *reading, void *context);

/*
 * Opens, checks (kind of file, owner, magic, version, size) and maps the segment, and calls `visit`
 * on it; a fault while it runs makes the segment refused. Fills the reason on any result but
 * BFC_READ_OK.
 */
enum bfc_read_result segment_visit_file(int directory, struct reading *reading, bool writable,
                                        segment_visit *visit, void *context);

#endif

/*
 * Opens a segment and trusts nothing in it: kind of file, owner, magic, version and sizes are
 * checked before anything else is read. No state, no allocation; thread-safe.
 */
#ifndef BFC_SEGMENT_FILE_H
#define BFC_SEGMENT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "segment/name.h"

enum bfc_read_result {
    BFC_READ_OK,
    BFC_READ_ABSENT,  /* there is no such segment (any more) */
    BFC_READ_YOUNG,   /* the segment's job is still initializing it */
    BFC_READ_REFUSED, /* the segment is not readable, another user's, truncated, of another version,
                         or damaged */
};

/* Which segment to open, and a buffer into which the reason is written if the segment is refused:
 * one line, cut off at `reason_size` bytes. If `reason_size` is 0, no reason is written. */
struct bfc_segment_look {
    const struct bfc_segment_name *name;
    char *reason;
    size_t reason_size;
};

/* Writes the reason why a segment is refused into look->reason; returns BFC_READ_REFUSED. */
enum bfc_read_result bfc_segment_refuse(const struct bfc_segment_look *look, const char *format,
                                        ...) PRINTF_LIKE(2, 3);

/* Opens the segment's file and checks its owner, mode, magic, version and size. `file` is open only
 * if the result is BFC_READ_OK. */
enum bfc_read_result bfc_segment_file_open(const struct bfc_segment_look *look, int directory,
                                           bool writable, int *file);

/* Reads `size` bytes from `offset` on; false if not all of them could be read. */
bool bfc_segment_read_at(int file, void *to, size_t size, uint64_t offset);

/* Maps an open segment (BFC_SEGMENT_SIZE bytes, shared); NULL with errno set on failure. An access
 * raises SIGBUS if the file has been truncated meanwhile. */
void *bfc_segment_file_map(int file, bool writable);

/* Checks a segment's magic and version. BFC_READ_YOUNG: the magic is still 0, since the job is
 * still initializing the segment. */
enum bfc_read_result bfc_segment_check_magic(const struct bfc_segment_look *look, uint64_t magic,
                                             uint32_t version);

/* Checks the rest of a header: sizes, identity, and that texts are terminated. */
enum bfc_read_result bfc_segment_check_header(const struct bfc_segment_look *look,
                                              const struct bfc_segment_header *header);

#endif

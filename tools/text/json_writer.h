/*
 * Writes JSON (RFC 8259) to a stream, indented, with one call for each value.
 *
 * The caller keeps the structure: `key` is NULL in arrays and at the top, not NULL in objects.
 * Strings may hold any bytes: what is not UTF-8 becomes U+FFFD. Depth is at most 16. A write error
 * is left in the stream's error flag. Not thread-safe for one writer; writers are independent.
 */
#ifndef BFC_TOOLS_JSON_WRITER_H
#define BFC_TOOLS_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
    FILE *stream;
    int depth;
    bool compact;    /* whether all is written in one line without blanks */
    bool filled[17]; /* whether the object or array at this depth has a member yet */
};

struct json_writer json_writer_init(FILE *stream);

void json_object(struct json_writer *writer, const char *key);
void json_object_end(struct json_writer *writer);
void json_array(struct json_writer *writer, const char *key);
void json_array_end(struct json_writer *writer); /* The end of the outermost object or array also
                                                    writes a newline. */

void json_string(struct json_writer *writer, const char *key, const char *value);
void json_string_n(struct json_writer *writer, const char *key, const char *value, size_t length);
void json_unsigned(struct json_writer *writer, const char *key, uint64_t value);
void json_signed(struct json_writer *writer, const char *key, int64_t value);
/* Writes a number; a NaN is written as null. */
void json_number(struct json_writer *writer, const char *key, double value);
void json_boolean(struct json_writer *writer, const char *key, bool value);
void json_null(struct json_writer *writer, const char *key);

#endif

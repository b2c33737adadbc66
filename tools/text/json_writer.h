/*
 * Writes JSON (RFC 8259) to a stream, indented or in one line, with one call for each value.
 *
 * The caller must call the functions in an order that makes valid JSON: `key` must be NULL in
 * arrays and at the top, and not NULL in objects. Strings may hold any bytes: what is not UTF-8
 * becomes U+FFFD. Objects and arrays may be nested 16 deep. After a write error the stream's error
 * flag is set. Thread-safety: one thread at a time for a writer.
 */
#ifndef BFC_TOOLS_JSON_WRITER_H
#define BFC_TOOLS_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
    FILE *stream;
    int depth;
    bool compact; /* whether the JSON is written in one line without blanks */
    /* whether the open object or array at this depth has a member, so that the next needs a
     * comma */
    bool filled[17];
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
/* Writes a number; null if it is infinite or not a number. */
void json_number(struct json_writer *writer, const char *key, double value);
void json_boolean(struct json_writer *writer, const char *key, bool value);
void json_null(struct json_writer *writer, const char *key);

#endif

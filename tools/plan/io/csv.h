/*
 * Reads and writes lifetimes of buffers as comma-separated text.
 *
 * The first line names the columns, in any order: id, lower, upper, size; optional: alias, group,
 * space, offset, stream. Each further line is a buffer, in any order, that lives from time `lower`
 * on and no longer at `upper`. Fields may be quoted ("a,b", with "" for a quote); blank lines and
 * spaces around fields are skipped; line ends are LF or CRLF. An empty optional field means that
 * the buffer has no such constraint.
 */
#ifndef BFC_PLAN_CSV_H
#define BFC_PLAN_CSV_H

#include <stdio.h>

#include "planner/model/lifetimes.h"

/* Reads lifetimes from `text`, which becomes part of them; on failure it is freed. lifetimes_free
 * frees them. */
bool csv_parse(struct lifetimes *lifetimes, struct file_text *text, const char *path,
               struct plan_error *error);

/* Writes a line for each buffer, with the columns id, lower, upper, size and offset. If `offsets`
 * is NULL, there is no column offset, but a column alias if any buffer has an alias. */
bool csv_write(const struct lifetimes *lifetimes, const uint64_t *offsets, const char *path,
               struct plan_error *error);

/* Writes a field; in quotes if it contains commas or quotes (RFC 4180). */
void csv_write_field(FILE *stream, struct name field);

#endif

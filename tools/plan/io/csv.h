/*
 * Lifetimes as comma-separated text.
 *
 * The first line names the columns, in any order: id, lower, upper, size; optional: alias, group,
 * space, offset, stream. One row a buffer, in any order; half-open lifetimes [lower, upper). Fields
 * may be quoted ("a,b", with "" for a quote); blank lines and spaces around fields are skipped;
 * line ends are LF or CRLF. An empty optional field means that the row has no such constraint.
 */
#ifndef BFC_PLAN_CSV_H
#define BFC_PLAN_CSV_H

#include <stdio.h>

#include "planner/model/lifetimes.h"

/* Takes over `text` (also on failure). Free with lifetimes_free. */
bool csv_parse(struct lifetimes *lifetimes, struct file_text *text, const char *path,
               struct plan_error *error);

/* Writes id,lower,upper,size of the first `visible` rows, in their order, and offset; or with
 * `offsets` NULL, alias if any row has one. */
bool csv_write(const struct lifetimes *lifetimes, const uint64_t *offsets, const char *path,
               struct plan_error *error);

/* Writes a field, in quotes if it has commas or quotes in it (RFC 4180). */
void csv_write_field(FILE *stream, struct name field);

#endif

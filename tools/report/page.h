/*
 * The report: one web page that needs nothing else, with the lines of a recording in its middle,
 * which a script in the page draws. docs/bfcstat.md describes the lines.
 *
 * Each '<' in a line is written as \u003c, which is the same in JSON, so nothing in a recording can
 * end the script element that holds it. Thread-safety: none needed; one thread a stream.
 */
#ifndef BFC_TOOLS_REPORT_PAGE_H
#define BFC_TOOLS_REPORT_PAGE_H

#include <stdio.h>

/* What stands before the lines, and after them. */
void report_begin(FILE *page);
void report_end(FILE *page);

/* Between the lines of two recordings, which then stand side by side. */
void report_beside(FILE *page);

/* Lines of JSON that hold texts of a program's. */
void report_put(const char *lines, FILE *page);

/* Copies all lines of a recording that are whole objects. Returns how many were not; -1: it is no
 * recording. */
long report_copy(FILE *recording, FILE *page);

#endif

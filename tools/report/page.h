/*
 * Writes the report: one web page that needs no other file. The lines of a recording (JSON) are in
 * the middle of the page, and a script in the page draws charts from them. docs/bfcstat.md
 * describes the lines.
 *
 * Each '<' in a line is written as \u003c, which means the same in JSON, so that no text in a
 * recording can end the script element that holds it.
 *
 * Thread-safety: one thread at a time for a stream.
 */
#ifndef BFC_TOOLS_REPORT_PAGE_H
#define BFC_TOOLS_REPORT_PAGE_H

#include <stdio.h>

/* Write the parts of the page before and after the lines of the recording. */
void report_begin(FILE *page);
void report_end(FILE *page);

/* Must be called between the lines of two recordings, which the page then shows side by side. */
void report_beside(FILE *page);

/* Writes lines of JSON, with each '<' escaped. They may contain texts from other programs. */
void report_put(const char *lines, FILE *page);

/* Copies all lines of a recording that are whole objects into the page. Returns how many lines are
 * not whole; -1: the file is no recording. */
long report_copy(FILE *recording, FILE *page);

#endif

/*
 * Formats numbers and text from other programs for people to read, and prints tables.
 *
 * Functions that fill `text` cut off at `size` bytes and always end it with NUL; they return
 * `text`, so that calls can be arguments of printf. They have no state and are thread-safe.
 */
#ifndef BFC_TOOLS_TEXT_H
#define BFC_TOOLS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/percentage.h"

/* bytes that suffice for each text of a number that the functions below write */
#define TEXT_FIGURE 32u

/* Writes a number with its digits in groups: "1,234,567". */
char *text_count(uint64_t count, char *text, size_t size);

/* Writes a duration for people: "350 ns", "12.3 us", "4.56 s", "2 min 10 s", "3 h 4 min", "2 d 3
 * h". */
char *text_duration(uint64_t ns, char *text, size_t size);

/* Returns how many bytes the first character of a UTF-8 text has; 0: the text does not begin with a
 * valid character. `length` is that of the whole text in bytes. */
size_t text_utf8_length(const char *text, size_t length);

/* Copies a text from another program so that it is safe to print on a terminal: control characters
 * and bytes that are not UTF-8 become '?'. */
char *text_printable(const char *foreign, char *text, size_t size);

/*
 * Prints a text in lines, broken between words, and a line feed at its end. Each line begins with
 * `indent` blanks and has at most `width` columns, unless a single word is longer. The text is
 * ASCII.
 */
void text_wrap(const char *words, unsigned indent, unsigned width, FILE *stream);

/* Returns how many columns the terminal has on which `stream` prints; `otherwise` if it is no
 * terminal. */
unsigned text_width(FILE *stream, unsigned otherwise);

/* A table of texts for people: each column is as wide as its widest cell, with two blanks between
 * columns. It has at most TEXT_COLUMNS columns, and cells are cut off at TEXT_CELL bytes. */
#define TEXT_COLUMNS 12u
#define TEXT_CELL 320u

struct text_table {
    size_t columns;
    size_t rows;
    uint32_t right; /* bit i: column i is aligned on the right */
    char (*cells)[TEXT_CELL];
};

/* Appends a row of table->columns texts. Returns 0, or -1 when memory runs out. */
int text_table_add(struct text_table *table, const char *const *cells);

/* Prints the table. If `width` is not 0, the last column is cut off so that lines have at most
 * `width` columns; but its cells are never cut to fewer than 8 characters. */
void text_table_print(const struct text_table *table, FILE *stream, size_t width);

void text_table_free(struct text_table *table);

#endif

/*
 * Formats figures and foreign text for people, and prints tables of them.
 *
 * Functions that fill `text` cut off at `size` bytes and always end it with NUL; they return
 * `text`, so that calls nest in printf's arguments. No state; thread-safe.
 */
#ifndef BFC_TOOLS_TEXT_H
#define BFC_TOOLS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/percentage.h"

#define TEXT_FIGURE 32u /* bytes that suffice for each figure below */

/* Writes a number with its digits in groups: "1,234,567". */
char *text_count(uint64_t count, char *text, size_t size);

/* Writes a duration for people: "350 ns", "12.3 us", "4.56 s", "2 min 10 s", "3 h 4 min", "2 d 3
 * h". */
char *text_duration(uint64_t ns, char *text, size_t size);

/* Returns how many bytes the UTF-8 character has with which `text` begins; 0: the text begins
 * with no valid character. */
size_t text_utf8_length(const char *text, size_t length);

/* Copies a foreign text so that it is safe for a terminal: control characters and bytes that are
 * not UTF-8 become '?'. */
char *text_printable(const char *foreign, char *text, size_t size);

/*
 * Prints words, and a line feed after the last; each line begins with `indent` blanks and has at
 * most `width` columns, but for a word that is longer. The text is ASCII.
 */
void text_wrap(const char *words, unsigned indent, unsigned width, FILE *stream);

/* Returns the width in columns of the terminal that `stream` refers to; `otherwise` if it is no
 * terminal. */
unsigned text_width(FILE *stream, unsigned otherwise);

/* A table: columns as wide as their widest cell, two blanks between them. */
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

/* Prints the table; the last column is cut, at 8 characters or more, so that lines fit `width` (0:
 * no limit). */
void text_table_print(const struct text_table *table, FILE *stream, size_t width);

void text_table_free(struct text_table *table);

#endif

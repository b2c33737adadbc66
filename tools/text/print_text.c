#include "tools/text/print_text.h"

#include <stdlib.h>
#include <string.h>

static char *print_scaled(double value, const char *unit, char *text, size_t size) {
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(text, size, "%.*f %s", decimals, value, unit);
    return text;
}

char *text_count(uint64_t count, char *text, size_t size) {
    char digits[TEXT_FIGURE];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t used = 0;
    for (int i = 0; i < length && used + 1 < size; i++) {
        if (i && (length - i) % 3 == 0 && used + 2 < size)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

static char *print_pair(uint64_t high, const char *high_unit, uint64_t low, const char *low_unit,
                        char *text, size_t size) {
    snprintf(text, size, "%llu %s %llu %s", (unsigned long long)high, high_unit,
             (unsigned long long)low, low_unit);
    return text;
}

char *text_duration(uint64_t ns, char *text, size_t size) {
    uint64_t seconds = ns / 1000000000u;
    if (seconds >= 86400)
        return print_pair(seconds / 86400, "d", seconds % 86400 / 3600, "h", text, size);
    if (seconds >= 3600)
        return print_pair(seconds / 3600, "h", seconds % 3600 / 60, "min", text, size);
    if (seconds >= 60)
        return print_pair(seconds / 60, "min", seconds % 60, "s", text, size);
    if (ns < 1000) {
        snprintf(text, size, "%u ns", (unsigned)ns);
        return text;
    }
    if (ns < 999500)
        return print_scaled((double)ns / 1e3, "us", text, size);
    if (ns < 999500000)
        return print_scaled((double)ns / 1e6, "ms", text, size);
    return print_scaled((double)ns / 1e9, "s", text, size);
}

static int is_continuation(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

size_t text_utf8_length(const char *text, size_t length) {
    unsigned char first = (unsigned char)text[0];
    size_t need = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length < need || first > 0xF4)
        return 0;
    for (size_t i = 1; i < need; i++)
        if (!is_continuation(text[i]))
            return 0;
    /* Overlong forms, surrogates and characters above U+10FFFF are refused, because UTF-8 does
     * not allow them (RFC 3629). */
    unsigned char second = need > 1 ? (unsigned char)text[1] : 0;
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
        return 0;
    return need;
}

/* Whether the character is a control character: one of C0 and C1, or DEL. */
static int is_control(const char *text, size_t length) {
    unsigned char first = (unsigned char)text[0];
    return first < 0x20 || first == 0x7F ||
           (length == 2 && first == 0xC2 && (unsigned char)text[1] < 0xA0);
}

char *text_printable(const char *foreign, char *text, size_t size) {
    size_t left = strlen(foreign), used = 0;
    while (left) {
        size_t step = text_utf8_length(foreign, left);
        size_t width = step ? step : 1;
        if (used + width >= size)
            break;
        if (step == 0 || is_control(foreign, step))
            text[used++] = '?';
        else
            for (size_t i = 0; i < step; i++)
                text[used++] = foreign[i];
        foreign += width;
        left -= width;
    }
    text[used] = '\0';
    return text;
}

/* Returns how many columns of a terminal a text takes. Characters are counted, not bytes;
 * characters that are wide or take no column count as one. */
static size_t display_width(const char *text) {
    size_t width = 0;
    for (; *text; text++)
        width += !is_continuation(*text);
    return width;
}

int text_table_add(struct text_table *table, const char *const *cells) {
    size_t used = table->rows * table->columns;
    void *larger = realloc(table->cells, (used + table->columns) * sizeof *table->cells);
    if (!larger)
        return -1;
    table->cells = larger;
    for (size_t i = 0; i < table->columns; i++)
        snprintf(table->cells[used + i], TEXT_CELL, "%s", cells[i]);
    table->rows++;
    return 0;
}

static void measure_columns(const struct text_table *table, size_t *widths) {
    for (size_t i = 0; i < table->rows * table->columns; i++) {
        size_t width = display_width(table->cells[i]);
        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
}

/* Prints the last cell of a row, cut off after `room` characters (SIZE_MAX: not cut off), and a
 * line feed. */
static void print_last(FILE *stream, const char *cell, size_t room) {
    for (; *cell && (room || is_continuation(*cell)); cell++) {
        room -= !is_continuation(*cell);
        putc(*cell, stream);
    }
    putc('\n', stream);
}

static void print_padded(FILE *stream, const char *cell, size_t width, int right) {
    int blanks = (int)(width - display_width(cell));
    if (right)
        fprintf(stream, "%*s%s  ", blanks, "", cell);
    else
        fprintf(stream, "%s%*s  ", cell, blanks, "");
}

void text_table_print(const struct text_table *table, FILE *stream, size_t width) {
    size_t widths[TEXT_COLUMNS] = {0}, before = 0;
    measure_columns(table, widths);
    for (size_t i = 0; i + 1 < table->columns; i++)
        before += widths[i] + 2;
    size_t room = width == 0 ? SIZE_MAX : width > before + 8 ? width - before : 8;
    for (size_t row = 0; row < table->rows; row++) {
        char(*cells)[TEXT_CELL] = &table->cells[row * table->columns];
        for (size_t i = 0; i + 1 < table->columns; i++)
            print_padded(stream, cells[i], widths[i], table->right >> i & 1);
        print_last(stream, cells[table->columns - 1], room);
    }
}

void text_table_free(struct text_table *table) {
    free(table->cells);
    table->cells = NULL;
    table->rows = 0;
}

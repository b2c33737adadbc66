/* Prints and parses numbers of bytes in binary units. */
#include "base/bytes.h"

#include <stdio.h>

char *bfc_bytes_text(uint64_t bytes, char *text, size_t size) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(text, size, "%u B", (unsigned)bytes);
        return text;
    }
    unsigned unit = 0;
    double value = (double)bytes / 1024;
    for (; value >= 1023.5 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024;
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(text, size, "%.*f %s", decimals, value, units[unit]);
    return text;
}

void bfc_bytes_print(uint64_t bytes, char *text, size_t size) {
    static const char units[] = "KMGT";
    int unit = -1;
    for (; unit < 3 && bytes != 0 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    snprintf(text, size, unit < 0 ? "%llu" : "%llu%c", (unsigned long long)bytes,
             unit < 0 ? 0 : units[unit]);
}

/* Returns the exponent of the unit's power of two, such as 10 for K, or 0 if the character is no
 * unit. */
static unsigned shift_of_unit(char unit) {
    switch (unit) {
    case 'K':
    case 'k':
        return 10;
    case 'M':
    case 'm':
        return 20;
    case 'G':
    case 'g':
        return 30;
    case 'T':
    case 't':
        return 40;
    default:
        return 0;
    }
}

/* Parses what follows the digits of a number: nothing, or a unit with at most one blank before it.
 * False: the text is anything else. */
static bool read_unit(const char *text, unsigned *shift) {
    text += text[0] == ' ' && text[1] != '\0';
    *shift = shift_of_unit(*text);
    text += *shift != 0;
    text += *shift != 0 && *text == 'i';
    text += *text == 'B' || *text == 'b';
    return *text == '\0';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Returns a decimal fraction of 1 << `shift`, rounded down. `first` and `end` enclose its digits.
 * Each step divides by 10 and rounds down. Done from the last digit to the first, that gives the
 * same result as rounding once at the end. */
static uint64_t bytes_of_fraction(const char *first, const char *end, unsigned shift) {
    uint64_t bytes = 0;
    while (end > first)
        bytes = (((uint64_t)(*--end - '0') << shift) + bytes) / 10;
    return bytes;
}

bool bfc_bytes_parse(const char *text, uint64_t most, uint64_t *bytes) {
    uint64_t number = 0;
    const char *at = text;
    unsigned shift;
    for (; is_digit(*at); at++)
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return false;
    const char *digits = at + (*at == '.'), *end = digits;
    while (*at == '.' && is_digit(*end))
        end++;
    bool has_fraction = end > digits;
    if (at == text || (*at == '.' && !has_fraction) || !read_unit(end, &shift) ||
        (has_fraction && shift == 0) || number > most >> shift)
        return false;
    uint64_t fraction = bytes_of_fraction(digits, end, shift);
    if (fraction > most - (number << shift))
        return false;
    *bytes = (number << shift) + fraction;
    return true;
}

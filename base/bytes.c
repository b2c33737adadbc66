/* Numbers of bytes in binary units: printing and parsing. */
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

/* 0: it is none. */
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

bool bfc_bytes_parse(const char *text, uint64_t most, uint64_t *bytes) {
    uint64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return false;
    unsigned shift = shift_of_unit(*at);
    if (at == text || at[shift != 0] != '\0' || number > most >> shift)
        return false;
    *bytes = number << shift;
    return true;
}

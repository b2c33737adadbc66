/* Numbers of bytes in binary units. */
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

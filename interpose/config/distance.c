/* The distance of two names, by dynamic programming with one row. */
#include "interpose/config/distance.h"

#include <limits.h>
#include <string.h>

enum { LONGEST = 63 };

static unsigned least_of(unsigned a, unsigned b) {
    return a < b ? a : b;
}

unsigned bfc_name_distance(const char *a, const char *b) {
    unsigned row[LONGEST + 1], length = (unsigned)strnlen(b, LONGEST + 1);
    if (length > LONGEST || strnlen(a, LONGEST + 1) > LONGEST)
        return UINT_MAX;
    for (unsigned j = 0; j <= length; j++)
        row[j] = j;
    for (; *a; a++) {
        unsigned diagonal = row[0]++;
        for (unsigned j = 1; j <= length; j++) {
            unsigned changed = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            row[j] = least_of(changed, least_of(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

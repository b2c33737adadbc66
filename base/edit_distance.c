#include "base/edit_distance.h"

#include <string.h>

#include "base/numbers.h"

/* Dynamic programming with one row (V. Levenshtein, 1966). */
uint64_t bfc_edit_distance(const char *a, const char *b) {
    enum { LONGEST = 63 };
    uint64_t row[LONGEST + 1], length = strnlen(b, LONGEST + 1);
    if (length > LONGEST || strnlen(a, LONGEST + 1) > LONGEST)
        return UINT64_MAX;
    for (uint64_t j = 0; j <= length; j++)
        row[j] = j;
    for (; *a; a++) {
        uint64_t diagonal = row[0]++;
        for (uint64_t j = 1; j <= length; j++) {
            uint64_t changed = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            row[j] = bfc_min(changed, bfc_min(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

#include "planner/common/sort.h"

#include <stdlib.h>
#include <string.h>

static void one_pass(struct keyed *to, const struct keyed *from, size_t n, unsigned shift,
                     size_t *start) {
    size_t sum = 0;
    for (int digit = 0; digit < 256; digit++) {
        const size_t count = start[digit];
        start[digit] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[start[(from[i].key >> shift) & 255]++] = from[i];
}

static void insertion_sort(struct keyed *list, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const struct keyed entry = list[i];
        size_t at = i;
        for (; at > 0 && list[at - 1].key > entry.key; at--)
            list[at] = list[at - 1];
        list[at] = entry;
    }
}

bool sort_keyed(struct keyed *list, size_t n) {
    if (n < 32) {
        insertion_sort(list, n);
        return true;
    }
    size_t(*counts)[256] = calloc(8, sizeof *counts);
    struct keyed *spare = malloc(n * sizeof *spare);
    struct keyed *from = list;
    struct keyed *to = spare;
    const bool good = counts && spare;
    for (size_t i = 0; good && i < n; i++)
        for (unsigned digit = 0; digit < 8; digit++)
            counts[digit][(list[i].key >> (8 * digit)) & 255]++;
    for (unsigned digit = 0; good && digit < 8; digit++) {
        if (counts[digit][(list[0].key >> (8 * digit)) & 255] == n)
            continue;
        one_pass(to, from, n, 8 * digit, counts[digit]);
        struct keyed *swap = from;
        from = to;
        to = swap;
    }
    if (good && from != list)
        memcpy(list, from, n * sizeof *list);
    free(counts);
    free(spare);
    return good;
}

uint64_t sort_key_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* BUFFER_ID: one an allocation, the same all over it, never used again in the process [D]. */
#include "tests/conformance/pointers.h"

enum { ROUNDS = 500, BLOCKS = 4, HOST = 50, ALL = ROUNDS * BLOCKS + HOST };

static int by_value(const void *a, const void *b) {
    unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;
    return x < y ? -1 : x > y;
}

int main(void) {
    static unsigned long long ids[ALL];
    int count = 0, moved = 0;
    use_device(0);
    for (int round = 0; round < ROUNDS; round++) {
        char *blocks[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = new_block((size_t)1000 << i);
            ids[count++] = id_of(blocks[i]);
        }
        for (int i = 0; i < BLOCKS; i++)
            moved += id_of(blocks[i] + ((size_t)1000 << i) - 1) != ids[count - BLOCKS + i];
        for (int i = 0; i < BLOCKS; i++)
            MUST(release(blocks[i]));
    }
    for (int i = 0; i < HOST; i++) {
        void *host = NULL;
        MUST(DRIVER(cuMemHostAlloc)(&host, 4096, 0));
        ids[count++] = id_of(host);
        MUST(DRIVER(cuMemFreeHost)(host));
    }
    qsort(ids, ALL, sizeof ids[0], by_value);
    int repeated = 0;
    for (int i = 1; i < ALL; i++)
        repeated += ids[i] == ids[i - 1];
    printf("of %d allocations' ids, repeated: %d, zero: %d\n", ALL, repeated, ids[0] == 0);
    printf("different at the last byte: %d\n", moved);
    return 0;
}

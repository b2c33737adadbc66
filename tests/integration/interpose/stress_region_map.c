/* Readers beside writers on the map of regions: a stable region is always found, with its own
 * owner. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "interpose/arena/region_map.h"

enum { READERS = 3, ROUNDS = 20000 };

static atomic_bool done;
static atomic_int wrong;
static int stable, passing;

static void *read_map(void *unused) {
    (void)unused;
    while (!done) {
        wrong += bfc_region_owner(1000001) != &stable;
        void *owner = bfc_region_owner(500);
        wrong += owner && owner != &passing;
    }
    return NULL;
}

int main(void) {
    pthread_t readers[READERS];
    bfc_region_add(1000000, 1000, &stable);
    for (int i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, read_map, NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        bfc_region_add((i % 200) * 1000u, 1000, &passing);
        bfc_region_remove(((i + 100) % 200) * 1000u, &passing);
    }
    done = true;
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}

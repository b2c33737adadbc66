/*
 * Plain models of two published policies, written from their rules alone (but that no block is of
 * less than 512 bytes, and that large ones are aligned): arrays, linear searches,
 * no sharing of code or of ideas with pool/. One chunk array a model, in order of address.
 */
#ifndef TESTS_UNIT_POOL_PLAIN_MODELS_H
#define TESTS_UNIT_POOL_PLAIN_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#define PLAIN_CHUNKS 4096
#define PLAIN_NONE UINT64_MAX

struct plain_chunk {
    uint64_t start, size;
    unsigned segment;     /* number of the region: chunks of different ones never merge */
    bool used, small;     /* small: pytorch's pool of small blocks */
    uint64_t inserted_at; /* lookups when it became free */
};

struct plain {
    struct plain_chunk chunks[PLAIN_CHUNKS];
    unsigned count, segments;
    /* the device */
    uint64_t capacity, taken, next, gap;
    /* settings */
    uint64_t limit, max_split, threshold;
    /* state */
    uint64_t cur, lookups, in_use;
};

void plain_open(struct plain *plain, uint64_t capacity, uint64_t gap, uint64_t limit);

/* The address, or PLAIN_NONE: out of memory. */
uint64_t plain_tf_allocate(struct plain *plain, uint64_t bytes);
uint64_t plain_pytorch_allocate(struct plain *plain, uint64_t bytes);
void plain_free(struct plain *plain, uint64_t start);

#endif

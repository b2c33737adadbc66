/*
 * Models of how TensorFlow's and PyTorch's allocators find memory, as their published rules say:
 * what is kept of free and of live blocks, and which free block is taken. Only what costs time and
 * host memory is modelled: one device, one stream, regions that are there from the beginning.
 *
 * tf: sizes are multiples of 256. Free blocks are in bins by powers of two, each a set ordered by
 * size and address, which is walked from its beginning. A block is found by an array with an entry
 * for each 256 bytes of a region. pytorch: multiples of 512; one set, in which the least block that
 * fits is looked up; a block is found by a hash table. Both merge a freed block with its free
 * neighbours, and have one lock.
 */
#ifndef TESTS_BENCH_SCALE_MODELS_H
#define TESTS_BENCH_SCALE_MODELS_H

#include <stdint.h>

enum rule { RULE_TF, RULE_PYTORCH };
struct model;

/* Exits if the host has no memory. `regions` of equal size, together `bytes`. */
struct model *model_new(enum rule rule, uint64_t bytes, unsigned regions);

/* Thread-safe. 0: there is no such block. */
uint64_t model_allocate(struct model *model, uint64_t bytes);
void model_free(struct model *model, uint64_t address);

#endif

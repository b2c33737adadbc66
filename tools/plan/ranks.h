/*
 * In which order a greedy packer prefers boxes: by weighted sums of the logarithms of their width (in
 * sections), size and crowd (the most live bytes that they meet), after MiniMalloc's orders (Moffitt,
 * ASPLOS 2023) and XLA's and TFLite's greedy ones.
 */
#ifndef BFC_PLAN_RANKS_H
#define BFC_PLAN_RANKS_H

#include <stdbool.h>

#include "tools/plan/arena.h"
#include "tools/plan/sort.h"

struct traits {
    float width, size, crowd; /* base-2 logarithms */
};

struct weights {
    double width, size, crowd;
};

#define FIXED_ORDERS 8
extern const struct weights fixed_orders[FIXED_ORDERS];

/* The traits of n boxes whose sections are below `sections`. False: no host memory. */
bool ranks_measure(struct traits *traits, const struct box *boxes, uint32_t n, uint32_t sections);

/* Worth of each box under the weights: the higher the earlier. */
void ranks_weigh(double *worth, const struct traits *traits, uint32_t n, struct weights weights);

/* rank[i]: 0 for the box of highest worth, and so on. `spare` has room for n. */
bool ranks_sort(uint32_t *rank, const double *worth, uint32_t n, struct keyed *spare);

#endif

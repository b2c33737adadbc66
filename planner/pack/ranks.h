/*
 * The order in which a greedy packer prefers boxes: by weighted sums of the logarithms of their
 * span (in ticks), width (in sections), size and crowd (the most live bytes that they meet), after
 * MiniMalloc's orders (Moffitt, ASPLOS 2023) and XLA's and TFLite's greedy ones.
 */
#ifndef BFC_PLAN_RANKS_H
#define BFC_PLAN_RANKS_H

#include <stdbool.h>

#include "planner/common/sort.h"
#include "planner/problem/packing_arena.h"

struct traits {
    float span, width, size, crowd; /* base-2 logarithms; the span is in ticks */
};

struct weights {
    double span, width, size, crowd;
};

#define FIXED_ORDERS 10
extern const struct weights fixed_orders[FIXED_ORDERS];

/*
 * The traits of n boxes whose sections are below `sections`; `spans` is by item and `item` by box.
 * False: no host memory.
 */
bool ranks_measure(struct traits *traits, const struct box *boxes, uint32_t n, uint32_t sections,
                   const uint32_t *item, const uint64_t *spans);

/* Computes the worth of each box by the weights. A box of higher worth is placed earlier. */
void ranks_weigh(double *worth, const struct traits *traits, uint32_t n, struct weights weights);

/*
 * ranks_draw returns random weights; ranks_disturb adds noise of a random strength to each worth.
 */
struct weights ranks_draw(uint64_t *random);
void ranks_disturb(double *worth, uint32_t n, uint64_t *random);

/* The difference between the highest and the lowest worth of n boxes (n at least 1), and a little
 * more, so that it is not 0. */
double ranks_spread(const double *worth, uint32_t n);

/*
 * Lifts the worth of boxes that meet a section with much blame, so that boxes which made earlier
 * tries fail are placed earlier, as constraint solvers weigh constraints by their failures
 * (Boussemart, Hemery, Lecoutre and Sais, ECAI 2004). The box with most blame is lifted by
 * `strength` times the spread, the others in proportion.
 */
void ranks_learn(double *worth, const struct box *boxes, uint32_t n, const uint32_t *blame,
                 double strength);

/* Sets rank[i] to 0 for the box of highest worth, and so on. `spare` has room for n. False: no host
 * memory. */
bool ranks_sort(uint32_t *rank, const double *worth, uint32_t n, struct keyed *spare);

#endif

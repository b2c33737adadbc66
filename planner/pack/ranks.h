/*
 * Computes in which order a greedy packer places boxes. The worth of a box is a weighted sum of
 * four traits, each as a logarithm: its span (lifetime in ticks), its width (lifetime in sections
 * of time, see packing_arena.h), its size, and its crowd (the most bytes that are live at any time
 * of its life). The box of the highest worth comes first. The orders follow those of MiniMalloc
 * (Moffitt, ASPLOS 2023), XLA and TFLite.
 */
#ifndef BFC_PLAN_RANKS_H
#define BFC_PLAN_RANKS_H

#include <stdbool.h>

#include "planner/common/sort.h"
#include "planner/problem/packing_arena.h"

struct traits {
    /* base-2 logarithms of the lifetime in ticks, the lifetime in sections of time, the size in
     * bytes, and the most bytes that are live during the box's lifetime */
    float span, width, size, crowd;
};

struct weights {
    double span, width, size, crowd;
};

#define FIXED_ORDERS 10
extern const struct weights fixed_orders[FIXED_ORDERS];

/*
 * Computes the traits of n boxes, whose sections are numbered below `sections`. `item` has each
 * box's item, and `spans` each item's lifetime in ticks. False: the host has no memory.
 */
bool ranks_measure(struct traits *traits, const struct box *boxes, uint32_t n, uint32_t sections,
                   const uint32_t *item, const uint64_t *spans);

/* Computes the worth of each box as the sum of its traits, each multiplied by its weight. Boxes of
 * higher worth are placed earlier. */
void ranks_weigh(double *worth, const struct traits *traits, uint32_t n, struct weights weights);

/*
 * ranks_draw returns random weights for the traits of boxes. ranks_disturb adds a random number to
 * the worth of each box, up to a limit that is itself random.
 */
struct weights ranks_draw(uint64_t *random);
void ranks_disturb(double *worth, uint32_t n, uint64_t *random);

/* Returns the difference between the highest and the lowest worth of n boxes (at least one), plus a
 * little, so that it is never 0. */
double ranks_spread(const double *worth, uint32_t n);

/*
 * Raises the worth of boxes that are alive in sections of time in which earlier packings failed, so
 * that these boxes are placed earlier, as constraint solvers weigh constraints by their failures
 * (Boussemart, Hemery, Lecoutre and Sais, ECAI 2004). `blame` has the number of failures of each
 * section. A box counts as many failures as the worst of its sections. The boxes with the most get
 * `strength` times the spread of all worths, the others less in proportion to their failures.
 */
void ranks_learn(double *worth, const struct box *boxes, uint32_t n, const uint32_t *blame,
                 double strength);

/* Writes the rank of each box: 0 for the box of the highest worth, and so on. `spare` is working
 * memory for n elements. False: the host has no memory. */
bool ranks_sort(uint32_t *rank, const double *worth, uint32_t n, struct keyed *spare);

#endif

#include "planner/pack/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "planner/common/random.h"

/*
 * A small weight: the trait decides only between boxes for which the sum of the other traits, with
 * their much larger weights, is about the same.
 */
#define LESS 0x1p-10
const struct weights fixed_orders[FIXED_ORDERS] = {
    /* boxes whose size times lifetime in sections of time is largest come first */
    {0, 1, 1, 0},
    /* boxes that are alive together with the most bytes come first; of equal ones those that live
     * for the most sections of time */
    {0, LESS, 0, 1},
    {1, 0, 1, 0}, /* boxes whose size times lifetime in ticks is largest come first */
    /* boxes that are alive together with the most bytes come first; of equal ones those that live
     * for the most ticks */
    {LESS, 0, 0, 1},
    /* boxes that live for the most sections of time come first; of equal ones the largest */
    {0, 1, LESS, 0},
    /* boxes that are alive together with the most bytes come first; of equal ones those whose size
     * times lifetime in ticks is largest */
    {LESS, 0, LESS, 1},
    {1, 0, LESS, 0}, /* boxes that live for the most ticks come first; of equal ones the largest */
    /* the largest boxes come first; of equal ones those that live for the most sections of time */
    {0, LESS, 1, 0},
    /* boxes that live for the most ticks come first; of equal ones the smallest */
    {1, 0, -LESS, 0},
    /* boxes with the largest sum of three logarithms come first: of the lifetime in sections of
     * time, of the most bytes live during that lifetime, and half that of the size */
    {0, 1, 0.5, 1},
};

/* A binary tree over the sections of time. A leaf has the number of bytes that are live in its
 * section; each other node has the larger value of its two children. */
struct crowd_tree {
    uint64_t *most;
    uint32_t leaves;
};

static bool grow_tree(struct crowd_tree *tree, const struct box *boxes, uint32_t n,
                      uint32_t sections) {
    tree->leaves = sections;
    tree->most = calloc((size_t)sections * 2 + 1, sizeof *tree->most);
    if (!tree->most)
        return false;
    uint64_t *live = tree->most + sections;
    for (uint32_t i = 0; i < n; i++) {
        live[boxes[i].birth] += boxes[i].size;
        /* An element may wrap around below 0. The sums that are formed below wrap back, so they are
         * right. */
        live[boxes[i].death] -= boxes[i].size;
    }
    for (uint32_t s = 1; s < sections; s++)
        live[s] += live[s - 1];
    for (uint32_t node = sections; node-- > 1;)
        tree->most[node] = bfc_max(tree->most[2 * node], tree->most[2 * node + 1]);
    return true;
}

static uint64_t tree_most(const struct crowd_tree *tree, uint32_t from, uint32_t to) {
    uint64_t most = 0;
    size_t a = (size_t)from + tree->leaves;
    size_t b = (size_t)to + tree->leaves;
    for (; a < b; a /= 2, b /= 2) {
        if (a & 1)
            most = bfc_max(most, tree->most[a++]);
        if (b & 1)
            most = bfc_max(most, tree->most[--b]);
    }
    return most;
}

/*
 * Returns the base-2 logarithm of value + 1: the exponent of the float, plus the logarithm of its
 * mantissa m by the series of 2 artanh((m - 1) / (m + 1)). libm is not used, because its results
 * differ between systems, and because a job must not need another library.
 */
static float log_of(uint64_t value) {
    const float one_more = (float)value + 1;
    uint32_t bits;
    memcpy(&bits, &one_more, sizeof bits);
    const uint32_t mantissa = (bits & 0x7fffff) | 0x3f800000;
    float m;
    memcpy(&m, &mantissa, sizeof m);
    const double t = ((double)m - 1) / ((double)m + 1), square = t * t;
    double sum = 0;
    for (int power = 15; power > 0; power -= 2)
        sum = sum * square + 1.0 / power;
    return (float)((int)(bits >> 23) - 127) + (float)(2 / 0.69314718055994531 * t * sum);
}

bool ranks_measure(struct traits *traits, const struct box *boxes, uint32_t n, uint32_t sections,
                   const uint32_t *item, const uint64_t *spans) {
    struct crowd_tree tree;
    if (!grow_tree(&tree, boxes, n, sections))
        return false;
    for (uint32_t i = 0; i < n; i++)
        traits[i] = (struct traits){log_of(spans[item[i]]), log_of(boxes[i].death - boxes[i].birth),
                                    log_of(boxes[i].size),
                                    log_of(tree_most(&tree, boxes[i].birth, boxes[i].death))};
    free(tree.most);
    return true;
}

void ranks_weigh(double *worth, const struct traits *traits, uint32_t n, struct weights weights) {
    for (uint32_t i = 0; i < n; i++)
        worth[i] = weights.span * (double)traits[i].span + weights.width * (double)traits[i].width +
                   weights.size * (double)traits[i].size + weights.crowd * (double)traits[i].crowd;
}

struct weights ranks_draw(uint64_t *random) {
    const double time = random_unit(random) * 2;
    const bool ticks = random_unit(random) < 0.5;
    return (struct weights){ticks ? time : 0, ticks ? 0 : time, random_unit(random),
                            random_unit(random) < 0.3 ? 1024 : random_unit(random) * 4};
}

void ranks_disturb(double *worth, uint32_t n, uint64_t *random) {
    const double strength = random_unit(random) * random_unit(random) * 2;
    for (uint32_t i = 0; i < n; i++)
        worth[i] += strength * random_unit(random);
}

double ranks_spread(const double *worth, uint32_t n) {
    double least = worth[0], most = worth[0];
    for (uint32_t i = 1; i < n; i++) {
        least = worth[i] < least ? worth[i] : least;
        most = worth[i] > most ? worth[i] : most;
    }
    return most - least + 1e-6;
}

static uint32_t most_blame(const uint32_t *blame, const struct box *box) {
    uint32_t most = 0;
    for (uint32_t s = box->birth; s < box->death; s++)
        most = blame[s] > most ? blame[s] : most;
    return most;
}

void ranks_learn(double *worth, const struct box *boxes, uint32_t n, const uint32_t *blame,
                 double strength) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t own = most_blame(blame, &boxes[i]);
        most = own > most ? own : most;
    }
    const double lift = strength * ranks_spread(worth, n);
    for (uint32_t i = 0; i < n; i++)
        worth[i] += lift * most_blame(blame, &boxes[i]) / most;
}

bool ranks_sort(uint32_t *rank, const double *worth, uint32_t n, struct keyed *spare) {
    for (uint32_t i = 0; i < n; i++)
        spare[i] = (struct keyed){sort_key_of(-worth[i]), i};
    if (!sort_keyed(spare, n))
        return false;
    for (uint32_t i = 0; i < n; i++)
        rank[spare[i].index] = i;
    return true;
}

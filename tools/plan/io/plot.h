/*
 * Draws a plan as SVG: a rectangle over time and address for each buffer, and lines for the peak of
 * memory and its lower bound. Up to PLOT_TITLED rectangles are elements of their own, with a title.
 * If there are more, all of one colour are one path, so that even 100,000 make a small file that
 * viewers can show. Arenas (separate memories) are drawn one above the other.
 */
#ifndef BFC_PLAN_PLOT_H
#define BFC_PLAN_PLOT_H

#include <stdint.h>

#include "planner/common/error.h"

#define PLOT_TITLED 3000

enum plot_colour { PLOT_LIFELONG, PLOT_CROSSING, PLOT_SHORT, PLOT_COLOURS };

struct plot_box {
    uint64_t birth; /* begin and end of the lifetime, in ticks (units of time) */
    uint64_t death;
    uint64_t offset; /* bytes from the arena's start */
    uint64_t size;
    uint32_t arena;
    uint32_t row; /* index of the buffer in the file, which the rectangle's title shows */
    enum plot_colour colour;
};

struct plot_arena {
    uint64_t bound; /* the lower bound, in bytes: no plan has a lower peak */
    uint64_t peak;
};

struct plot {
    const struct plot_box *boxes;
    uint32_t boxes_count;
    const struct plot_arena *arenas;
    uint32_t arenas_count;
};

bool plot_write(const struct plot *plot, const char *path, struct plan_error *error);

#endif

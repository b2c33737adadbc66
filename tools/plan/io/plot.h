/*
 * Draws placed lifetimes as SVG: rectangles over time and address, bound and peak as lines.
 * Rectangles of one colour are one path, so that 10^5 of them stay a small file that viewers can
 * show; up to PLOT_TITLED have their own element with a title instead. Arenas stand above each
 * other.
 */
#ifndef BFC_PLAN_PLOT_H
#define BFC_PLAN_PLOT_H

#include <stdint.h>

#include "planner/common/error.h"

#define PLOT_TITLED 3000

enum plot_colour { PLOT_LIFELONG, PLOT_CROSSING, PLOT_SHORT, PLOT_COLOURS };

struct plot_box {
    uint64_t birth; /* ticks */
    uint64_t death;
    uint64_t offset; /* bytes from the arena's start */
    uint64_t size;
    uint32_t arena;
    uint32_t row; /* number of the row, from 0, which the rectangle's title names */
    enum plot_colour colour;
};

struct plot_arena {
    uint64_t bound; /* bytes */
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

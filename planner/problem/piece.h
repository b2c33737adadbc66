/* A rectangle of time and address at a fixed place within its item (packing_arena.h). */
#ifndef BFC_PLAN_PIECE_H
#define BFC_PLAN_PIECE_H

#include <stdint.h>

struct piece {
    uint64_t birth; /* ticks, half-open */
    uint64_t death;
    uint64_t place; /* bytes from the item's start */
    uint64_t size;
    uint32_t stream; /* number of the row's stream, or ROW_NONE */
    uint32_t row;    /* one of the rows that it covers, for messages */
};

#endif

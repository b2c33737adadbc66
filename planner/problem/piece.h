/* A rectangle of time and address. Items, which are moved as one, consist of such pieces at fixed
 * places (packing_arena.h). */
#ifndef BFC_PLAN_PIECE_H
#define BFC_PLAN_PIECE_H

#include <stdint.h>

struct piece {
    uint64_t birth; /* the piece is alive from the tick `birth` to before the tick `death` */
    uint64_t death;
    uint64_t place; /* where the piece begins within its item, in bytes */
    uint64_t size;
    uint32_t stream; /* number of the row's stream; ROW_NONE: the row is ordered with all streams */
    uint32_t row;    /* index of one of the rows that the piece is for; used in messages */
};

#endif

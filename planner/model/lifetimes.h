/*
 * What is to be planned: one row for each buffer, as a file gave them.
 *
 * Lifetimes are half-open, [birth, death), in ticks (number.h). Constraints: rows with one `alias`
 * root share their memory; rows of one `group` lie next to each other in row order; rows of
 * different `space`s live in separate arenas; `pin` is a given offset; rows of different `stream`s
 * may share memory only when their lifetimes are ordered by more than the stream gap.
 */
#ifndef BFC_PLAN_LIFETIMES_H
#define BFC_PLAN_LIFETIMES_H

#include "planner/common/error.h"
#include "planner/common/names.h"
#include "planner/common/text.h"

/* stands in place of the number of a row, group or stream where there is none */
#define ROW_NONE UINT32_MAX
#define NOT_PINNED UINT64_MAX /* in place of an offset: the row has no given one */
#define MOST_ROWS ((uint32_t)1 << 28)

struct lifetime {
    uint64_t birth; /* ticks */
    uint64_t death; /* ticks; above `birth` */
    uint64_t size;  /* bytes that the program requested */
    uint64_t pin;   /* the row's given offset in bytes, or NOT_PINNED */
    uint32_t line; /* line of the file that gave the row, counted from 1; 0: the row was made from a
                      trace */
    uint32_t alias;  /* the row whose memory this row shares, or ROW_NONE */
    uint32_t group;  /* the rows that are placed together have the same number; or ROW_NONE */
    uint32_t space;  /* the memory to plan it in, by the file's column `space`; 0: there is none */
    uint32_t stream; /* number of the stream; ROW_NONE: in order with all streams */
    uint32_t thread; /* the program's thread that allocated it; 0: unknown */
    /* the bytes requested, for a row that cannot be planned (its size is 0); else 0 */
    uint64_t unplanned;
    /* the tick at which the row dies, for a row that crosses the period's end; else 0 */
    uint64_t wraps_until;
};

struct lifetimes {
    const char *path; /* the name of the file or stream, for messages; the caller's */
    struct file_text text;
    struct names ids;    /* names of the rows, by their places in `rows` */
    struct names spaces; /* names of the spaces, by number; empty if there are none */
    struct lifetime *rows;
    uint32_t count;
    uint32_t *devices;     /* by space: the ordinal of the device in the trace; NULL: unknown */
    uint64_t program_hash; /* from a trace: hash of the executable and its arguments; 0: unknown */
    uint64_t hash;         /* hash of everything in the rows that a plan depends on */
    bool has_alias, has_group, has_pin, has_stream, from_trace;
    bool jitter; /* from a trace: whether some row of the period has the largest of several sizes */
    /* From a trace: how many rows precede the period, and how many one period has (0: none). */
    uint32_t prefix, period;
    uint64_t period_birth, period_ticks; /* when the period begins, and how long it is, in ticks */
    /* From a trace: rows from this one on are second halves of lifetimes that cross the period's
     * end. */
    uint32_t visible;
};

void lifetimes_free(struct lifetimes *lifetimes);

/* Returns the tick at which the row's memory is free again, which lies in the next period if the
 * row crosses the period's end. */
static inline uint64_t lifetimes_end(const struct lifetimes *lifetimes,
                                     const struct lifetime *row) {
    return row->wraps_until > 0 ? row->death + (row->wraps_until - lifetimes->period_birth)
                                : row->death;
}

/* Fills in `hash` from the rows. */
void lifetimes_seal(struct lifetimes *lifetimes);

/* "row 3 (line 4)" for messages; returns `text`. */
#define ROW_TEXT 48
const char *lifetimes_row_text(const struct lifetimes *lifetimes, uint32_t row,
                               char text[ROW_TEXT]);

#endif

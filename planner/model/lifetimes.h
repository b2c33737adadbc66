/*
 * The input of the planner: for each buffer a row with its lifetime, its size and its constraints.
 *
 * A buffer lives from `birth` to before `death`, in ticks (number.h). The constraints are these.
 * Rows that are linked by `alias` share their memory. The rows of a `group` lie next to each other
 * in memory, in the order of the rows. Rows of different `space`s lie in separate memories. A row
 * with a `pin` lies at that offset. Rows of different `stream`s may share memory only if more than
 * a given gap of time lies between their lifetimes.
 */
#ifndef BFC_PLAN_LIFETIMES_H
#define BFC_PLAN_LIFETIMES_H

#include "planner/common/error.h"
#include "planner/common/names.h"
#include "planner/common/text.h"

/* written in place of a row, group or stream number where a row has none */
#define ROW_NONE UINT32_MAX
#define NOT_PINNED UINT64_MAX /* the value of `pin` in a row that may lie at any offset */
#define MOST_ROWS ((uint32_t)1 << 28)

struct lifetime {
    uint64_t birth; /* the tick at which the buffer is allocated */
    uint64_t death; /* the tick at which the buffer is freed; above `birth` */
    uint64_t size;  /* bytes that the program requested */
    uint64_t pin;   /* the offset in bytes at which the row must lie, or NOT_PINNED */
    /* the line of the file from which the row was read, counted from 1; 0: the row was not read
     * from a file of lifetimes */
    uint32_t line;
    uint32_t alias; /* index of a row with which this row shares its memory, or ROW_NONE */
    /* the number of the row's group, whose rows lie next to each other; ROW_NONE: it is in no
     * group */
    uint32_t group;
    /* number of the separate memory in which the row lies; 0 if there is only one */
    uint32_t space;
    /* number of the stream that uses the buffer; ROW_NONE: the buffer is ordered with all
     * streams */
    uint32_t stream;
    uint32_t thread; /* number of the program's thread that allocates the buffer; 0: unknown */
    /* For a row that gets no offset (its `size` is 0 then): the bytes that it would need. 0: the
     * row gets an offset. */
    uint64_t unplanned;
    /* For a row that the next repetition of the loop frees: the tick of that free less the length
     * of a repetition, so that it lies in the repetition that is planned. 0: the row is freed in
     * the repetition that allocates it, or there is no loop. */
    uint64_t wraps_until;
};

struct lifetimes {
    /* the name of the file from which the rows were read, for messages; belongs to the caller */
    const char *path;
    struct file_text text;
    struct names ids; /* the rows' names; name number i is that of row i */
    /* the names of the spaces, by their numbers; empty if there is only one memory */
    struct names spaces;
    struct lifetime *rows;
    uint32_t count;
    /* by space: CUDA's number of the device that the space is on, as in the trace; NULL: unknown */
    uint32_t *devices;
    /* if the rows are from a trace: hash of the recorded executable and its arguments; 0:
     * unknown */
    uint64_t program_hash;
    uint64_t hash; /* hash of all that a plan of the rows depends on; written by lifetimes_seal */
    bool has_alias, has_group, has_pin, has_stream, from_trace;
    /* whether the rows are from a trace in which sizes differ between the loop's repetitions */
    bool jitter;
    /* If the rows are from a trace with a loop: how many rows are allocated before the loop, and
     * how many in one repetition of it. `period` is 0 if there is no loop. */
    uint32_t prefix, period;
    /* the tick at which the loop's first repetition begins, and the length of a repetition in
     * ticks */
    uint64_t period_birth, period_ticks;
    /* If the rows are from a trace: how many rows are allocations. The further rows are the second
     * halves of lifetimes that cross the end of a repetition. */
    uint32_t visible;
};

void lifetimes_free(struct lifetimes *lifetimes);

/* Returns the tick at which the row's memory is free again. If the next repetition frees it, this
 * tick lies beyond the end of the first repetition. */
static inline uint64_t lifetimes_end(const struct lifetimes *lifetimes,
                                     const struct lifetime *row) {
    return row->wraps_until > 0 ? row->death + (row->wraps_until - lifetimes->period_birth)
                                : row->death;
}

/* Sets `hash` to a hash of the rows. To be called when the rows are complete. */
void lifetimes_seal(struct lifetimes *lifetimes);

/* Writes the place of a row for messages, such as "row 3 (line 4)", and returns `text`. */
#define ROW_TEXT 48
const char *lifetimes_row_text(const struct lifetimes *lifetimes, uint32_t row,
                               char text[ROW_TEXT]);

#endif

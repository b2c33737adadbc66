/*
 * Calls in a recording, as exactly as they were: lines of the type `calls`, each an array of short
 * arrays, since there may be millions. Thread-safety: as page.h.
 */
#ifndef BFC_TOOLS_REPORT_CALLS_H
#define BFC_TOOLS_REPORT_CALLS_H

#include <stdint.h>
#include <stdio.h>

/* Of the lines; what an older page could not read raises it. */
#define REPORT_FORMAT 2

struct report_call {
    char kind;        /* a allocate, f free, g grow, r release, o out of memory, b begin, e end;
                         O: out of memory when a trace was recorded */
    uint64_t at;      /* microseconds since the first allocation; of a trace: the call's number */
    unsigned pool;    /* index of the section; of a trace: the device */
    uint64_t address; /* of the block or region */
    uint64_t bytes;   /* asked for, or of the region; of a free: 0 */
    uint64_t name;    /* of a trace's allocation: its number there; of an event: its own */
    uint64_t size;    /* of a block: bytes taken, padding included; 0: not known */
    uint32_t site;    /* of a trace's allocation: index of its line of sites; 0: not known */
    double weight;    /* then: blocks that the sample stands for */
};

struct report_calls {
    FILE *file;
    unsigned on_line; /* calls on the line that is being written */
};

/* Begins a line where need be. */
void report_put_call(struct report_calls *calls, const struct report_call *call);

/* Ends the line, if one has begun. `lost`: calls that were not seen so far, at most. */
void report_end_calls(struct report_calls *calls, uint64_t lost);

#endif

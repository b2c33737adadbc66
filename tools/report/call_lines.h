/*
 * Writes the calls of a recording: lines of the type `calls`, each with many short arrays, since
 * there may be millions of calls. Thread-safety: see page.h.
 */
#ifndef BFC_TOOLS_REPORT_CALLS_H
#define BFC_TOOLS_REPORT_CALLS_H

#include <stdint.h>
#include <stdio.h>

/* The version of the lines. A change that older pages cannot read raises it. */
#define REPORT_FORMAT 2

struct report_call {
    char kind;        /* a allocate, f free, g grow, r release, o out of memory, b begin, e end;
                         O: out of memory when a trace was recorded */
    uint64_t at;      /* microseconds since the first allocation; in a trace: the call's number */
    unsigned pool;    /* index of the section; in a trace: the device */
    uint64_t address; /* address of the block or region */
    uint64_t bytes;   /* bytes asked for, or size of the region; 0 for a free */
    uint64_t name;    /* number of the allocation in the trace, or of the event */
    uint64_t size;    /* bytes that the block takes, padding included; 0: not known */
    uint32_t site;    /* index of the line of the allocation's site, in a trace; 0: not known */
    double weight;    /* blocks that the site's sample represents */
};

struct report_calls {
    FILE *file;
    unsigned on_line; /* calls on the line that is being written */
};

/* Writes a call into the current line, or begins a new line if there is none or it is full. */
void report_put_call(struct report_calls *calls, const struct report_call *call);

/* Ends the line, if one has begun. `lost`: the most calls that may have been missed so far. */
void report_end_calls(struct report_calls *calls, uint64_t lost);

#endif

/*
 * Writes those lines of a recording (JSON) that list allocations, frees and other calls: lines of
 * the type `calls`, each with a short array for each of up to 4,096 calls, since there may be
 * millions of calls.
 *
 * Thread-safety: see page.h.
 */
#ifndef BFC_TOOLS_REPORT_CALLS_H
#define BFC_TOOLS_REPORT_CALLS_H

#include <stdint.h>
#include <stdio.h>

/* The version of the recording's lines. It is raised by a change that the script in older report
 * pages cannot read. */
#define REPORT_FORMAT 2

struct report_call {
    /* a: allocation, f: free, g: a region was taken, r: a region was given back, o: out of memory,
     * b: a pool began, e: a pool ended, O: out of memory when a trace was recorded. */
    char kind;
    /* Microseconds since the job's shared-memory segment was created; in a trace: the number of the
     * call. */
    uint64_t at;
    /* index of the pool in the job's shared-memory segment; in a trace: the device */
    unsigned pool;
    uint64_t address; /* address of the block or region */
    uint64_t bytes;   /* bytes requested, or size of the region; 0 for a free */
    uint64_t name;    /* in a trace: number of the allocation; else: number of the event */
    uint64_t size;    /* bytes that the block takes, padding included; 0: not known */
    /* in a trace: number of the allocation's call stack in the lines `sites`; 0: not known */
    uint32_t site;
    double weight; /* how many allocations this one, a sample, stands for; 0: not sampled */
};

struct report_calls {
    FILE *file;
    unsigned on_line; /* how many calls the line has that is being written; 0: no line has begun */
};

/* Adds a call to the line that is being written. Begins a new line if there is none or it is
 * full. */
void report_put_call(struct report_calls *calls, const struct report_call *call);

/* Ends the line that is being written, if there is one. `lost` is how many calls, at most, were
 * overwritten so far before they could be read. */
void report_end_calls(struct report_calls *calls, uint64_t lost);

#endif

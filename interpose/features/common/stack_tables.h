/*
 * The tables in which call stacks are kept (layout/who.h), as one feature passes them to another.
 * The tables only grow, and their entries never change, except for the counters in a site's entry.
 */
#ifndef BFC_INTERPOSE_STACK_TABLES_H
#define BFC_INTERPOSE_STACK_TABLES_H

#include "layout/trace.h"
#include "layout/who.h"

struct bfc_stack_tables {
    const struct bfc_who_site *sites;
    const struct bfc_who_frame *frames;
    const struct bfc_who_object *objects;
    const char *texts;
    struct bfc_trace_counts known; /* how many entries each table has */
};

#endif

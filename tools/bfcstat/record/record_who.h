/* Who holds the memory, in a recording: asks the job now and then. One thread. */
#ifndef BFC_TOOLS_RECORD_WHO_H
#define BFC_TOOLS_RECORD_WHO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "segment/name.h"

struct recorded_who {
    int directory;
    const struct bfc_segment_name *name;
    uint64_t created_ns; /* when the job's clock began */
    bool space;          /* the pools' blocks, too: large */
    bool events;         /* all of them are recorded: their sites, too */
    uint64_t next_event; /* those before have theirs */
    uint64_t sites;      /* so many are written */
};

/* Writes a moment, or why there is none, and the sites that are new. */
void record_who(struct recorded_who *recorded, FILE *file);

#endif

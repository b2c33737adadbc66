// Functions of the runtime that are not modelled, as in calls/entry/unmodelled.c: exported, counted
// in SIM_STATS, answering cudaErrorNotSupported. This file does without CUDA's headers, whose
// prototypes these definitions ignore on purpose.

int rt_unmodelled(const char *name); // in refuse.c

#define RT_UNMODELLED(name)                                                                        \
    int name(void);                                                                                \
    int name(void) {                                                                               \
        return rt_unmodelled(#name);                                                               \
    }
#include "sim/runtime/unmodelled.inc"

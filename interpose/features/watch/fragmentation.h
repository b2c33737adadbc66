/*
 * Fragmentation of a pool: how much of its ready memory is in pieces too small for the largest
 * request that the program made lately. Recent requests are read from the segment's ring of events,
 * so that an allocation spends no time on the measurement. Thread-safe.
 */
#ifndef BFC_INTERPOSE_FRAGMENTATION_H
#define BFC_INTERPOSE_FRAGMENTATION_H

/* Updates the field `fit` in the section of each living pool; does nothing without a segment. */
void bfc_fragmentation_measure(void);

#endif

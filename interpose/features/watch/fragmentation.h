/*
 * Fragmentation, as users mean it: how much of a pool's ready memory is in pieces too small for
 * the largest request that the job made lately. What was made lately is read from the segment's
 * ring of events, so that no call pays for it. Thread-safe.
 */
#ifndef BFC_INTERPOSE_FRAGMENTATION_H
#define BFC_INTERPOSE_FRAGMENTATION_H

/* Brings `fit` of each living pool's section up to date; nothing without a segment. */
void bfc_fragmentation_measure(void);

#endif

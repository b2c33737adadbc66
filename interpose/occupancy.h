/*
 * The segment's map: what lies where in each region, brought up to date when a reader asks.
 *
 * Walked block by block with a question to the pool for each, so that its lock is never held for
 * more than one: the job does not notice, and the picture may be of several moments. Called by the
 * helper thread alone.
 */
#ifndef BFC_INTERPOSE_OCCUPANCY_H
#define BFC_INTERPOSE_OCCUPANCY_H

/* Brings the map and each pool's largest_free up to date. */
void bfc_occupancy_refresh(void);

#endif

/*
 * The segment's map: which parts of each region are in use, refreshed when a reader requests it.
 *
 * It walks each pool block by block and queries the pool for each, so that the lock is held for one
 * block at a time: the job is not delayed, and the map may mix several moments. Called by the
 * helper thread alone.
 */
#ifndef BFC_INTERPOSE_OCCUPANCY_H
#define BFC_INTERPOSE_OCCUPANCY_H

/* Brings the map, each pool's largest_free and its fragmentation up to date. */
void bfc_occupancy_refresh(void);

#endif

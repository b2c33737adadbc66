/*
 * The segment's map shows which parts of each region are in use. It is refreshed when a reader
 * asks.
 *
 * A refresh takes the pool's lock anew for each block, so that the program is not delayed; the map
 * may therefore mix states of several moments. Only the helper thread may call this.
 */
#ifndef BFC_INTERPOSE_OCCUPANCY_H
#define BFC_INTERPOSE_OCCUPANCY_H

/* Updates the map, and largest_free and the fragmentation of each pool in the segment. */
void bfc_occupancy_refresh(void);

#endif

/* Frees in modes lazy and ordered where calls that submit work are counted (BFC_GATE). Thread-safe.
 */
#ifndef BFC_INTERPOSE_COUNTED_FREES_H
#define BFC_INTERPOSE_COUNTED_FREES_H

#include "interpose/arena/state.h"

/* Frees a block of a context without peers: without a fence while all work goes to one stream,
 * under the thread's last fence if no work was submitted since that was recorded, or else under a
 * new fence. */
CUresult bfc_free_counted(const struct bfc_driver *driver, struct bfc_arena *arena,
                          CUdeviceptr pointer);

#endif

/* Frees in modes lazy and ordered where submissions are counted. Thread-safe. */
#ifndef BFC_INTERPOSE_COUNTED_FREES_H
#define BFC_INTERPOSE_COUNTED_FREES_H

#include "interpose/arena/state.h"

/* Frees a block of a context without peers: without a fence while one stream orders all work, or
 * under the thread's last fence if nothing was submitted since. */
CUresult bfc_free_counted(const struct bfc_driver *driver, struct bfc_arena *arena,
                          CUdeviceptr pointer);

#endif

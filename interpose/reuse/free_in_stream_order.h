/* Frees in the order of a stream (cuMemFreeAsync). Thread-safe. */
#ifndef BFC_INTERPOSE_FREE_IN_STREAM_ORDER_H
#define BFC_INTERPOSE_FREE_IN_STREAM_ORDER_H

#include "interpose/arena/state.h"

/* Frees a pooled block: the block is ready once the stream's work so far is complete, whatever
 * other work is under way. On an error the block stays the program's. */
CUresult bfc_reuse_free_async(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdeviceptr pointer, CUstream stream, bool per_thread);

#endif

/*
 * The sampled check that all work goes to the only stream (only_stream.h): an
 * event in that stream, and one that covers the whole context. If the first is complete and the
 * second stays incomplete, work was submitted by a call that no hook saw; then nothing is taken
 * from the only stream any more. Thread-safe.
 */
#ifndef BFC_INTERPOSE_CHECK_STREAMS_H
#define BFC_INTERPOSE_CHECK_STREAMS_H

#include "interpose/arena/state.h"

/* To be called at each free of a block that is ready because of the only stream: begins a check at
 * every 4,096th, and looks at one that is under way at every 32nd. */
void bfc_check_streams(const struct bfc_driver *driver, const struct bfc_arena *arena);

#endif

/*
 * The sampled check that all work goes to the only stream (only_stream.h): an
 * event in that stream, and one that covers the whole context. If the first is complete and the
 * second stays incomplete, work was submitted by a call that no hook saw; then nothing is taken
 * from the only stream any more. Thread-safe.
 */
#ifndef BFC_INTERPOSE_CHECK_STREAMS_H
#define BFC_INTERPOSE_CHECK_STREAMS_H

#include "interpose/arena/state.h"

enum { BFC_CHECK_LOOK = 32 }; /* frees from one look at a check to the next */

/* To be called at every 32nd free of a block that is ready because of the only stream, with its
 * number: begins a check at every 4,096th, and looks at one that is under way. */
void bfc_check_streams(const struct bfc_driver *driver, const struct bfc_arena *arena,
                       uint64_t number);

#endif

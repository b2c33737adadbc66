/*
 * The sampled check that all work goes to the only stream (only_stream.h). It records one event in
 * that stream and one over all streams of the context. If the first is complete and the second
 * stays incomplete, a call that has no hook has submitted work to another stream; then every free
 * takes a fence again until the process ends. Thread-safe.
 */
#ifndef BFC_INTERPOSE_CHECK_STREAMS_H
#define BFC_INTERPOSE_CHECK_STREAMS_H

#include "interpose/arena/state.h"

enum { BFC_CHECK_LOOK = 32 }; /* frees from one query of a check's events to the next */

/* To be called at every 32nd free that needed no fence because of the only stream. `number` is what
 * bfc_only_stream_orders returned for that free. Begins a check if `number` is a multiple of 4,096;
 * if a check is under way, queries its events. */
void bfc_check_streams(const struct bfc_driver *driver, const struct bfc_arena *arena,
                       uint64_t number);

#endif

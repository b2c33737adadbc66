/*
 * Honest segments for tests: what a job with one pool on a made-up device publishes.
 *
 * Thread-safety: one writer a segment.
 */
#ifndef BFC_TESTS_TOOLS_SEGMENT_WRITER_H
#define BFC_TESTS_TOOLS_SEGMENT_WRITER_H

#include <stddef.h>

#include "layout/segment.h"

/* Lets the compiler see one object where there are parts at fixed distances. */
union test_segment {
    struct bfc_segment_header header;
    struct {
        char before_pools[BFC_SEGMENT_POOLS_OFFSET];
        struct bfc_segment_pool pools[BFC_SEGMENT_POOLS];
        struct bfc_map map;
    };
    struct {
        char before_landmarks[BFC_SEGMENT_LANDMARKS_OFFSET];
        struct bfc_event landmarks[BFC_LANDMARKS];
        struct bfc_event events[BFC_EVENTS];
    };
};

/* Fills `segment` for this process; liveness by pid alone (owner is 0). */
void test_segment_fill(union test_segment *segment);

/* When a process started, in the kernel's ticks, as a header has it; 0: there is none. */
uint64_t test_segment_start_of(int pid);

/* Its name, without the slash; `size` of 64 suffices. */
void test_segment_name(const union test_segment *segment, char *text, size_t size);

/* One allocation and one free of `bytes`, counted under the sequence lock: all sums stay right. */
void test_segment_write_pair(union test_segment *segment, uint64_t bytes);

#endif

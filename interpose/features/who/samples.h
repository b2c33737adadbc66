/*
 * Who allocates: samples of the pools' blocks, with the call stack of each (BFC_STACKS).
 *
 * A thread counts down the blocks to its next sample, for each power of two of size apart, and
 * takes a stack when there are none left; how far that is depends on how many were taken (pace.h).
 * Frees are not looked at: ids of blocks are never used again, so a sample is of a living block
 * exactly if the pool still has a live block of that id at its address; that is looked up later,
 * for a few old samples with each new one, and for all when somebody asks. Thread-safe.
 */
#ifndef BFC_INTERPOSE_WHO_H
#define BFC_INTERPOSE_WHO_H

#include "base/compiler.h"
#include "interpose/arena/state.h"
#include "layout/segment.h"
#include "layout/who.h"

/* An allocation of a thread whose countdown has come to its end (bfc_features_sample). */
void bfc_who_look(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes, unsigned bin);

/* Sets what the sites hold now (interpose/features/who/sites.h), and what the header tells of
 * samples; false: none was ever taken. */
bool bfc_who_bring_up_to_date(struct bfc_who_header *header);

/* Where a block in use was allocated, by its id; 0: it was not sampled. O(samples), under the lock
 * of the sites. */
uint32_t bfc_who_site_of(uint64_t id);

/*
 * Does that, and writes the sites into the shared folder (layout/who.h), with the blocks of the
 * pools if they are asked for. Only the helper thread calls it. In a process that has taken no
 * sample nothing is written but blocks.
 */
void bfc_who_write(bool blocks);

#endif

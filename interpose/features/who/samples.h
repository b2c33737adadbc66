/*
 * Samples of the pools' blocks, with the call stack of each allocation (BFC_STACKS).
 *
 * A thread counts its allocations down to the next sample, separately for each power of two of
 * size; how many lie between two samples depends on how many samples the thread took lately
 * (pace.h). Frees are not observed. Instead the pool is asked later whether a block with the
 * sample's id is still in use at its address, which is reliable because an id is never used twice:
 * each new sample checks a few old ones, and a reader's request checks all. Thread-safe.
 */
#ifndef BFC_INTERPOSE_WHO_H
#define BFC_INTERPOSE_WHO_H

#include "base/compiler.h"
#include "interpose/arena/state.h"
#include "layout/segment.h"
#include "layout/who.h"

/* To be called for an allocation that ended the thread's countdown to the next sample in its class
 * of sizes, the one with the number `bin`. Records the call stack if the allocation is a sample. */
void bfc_who_look(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes, unsigned bin);

/* Brings up to date what each call stack has in use (struct bfc_who_site), and sets the header's
 * fields about samples. False: no sample was ever taken. */
bool bfc_who_bring_up_to_date(struct bfc_who_header *header);

/* Returns the index in bfc_sites of the call stack that allocated the block with this id; 0 if the
 * block was not sampled. Searches through all samples. To be called under bfc_who_lock. */
uint32_t bfc_who_site_of(uint64_t id);

/* Brings the sums over samples up to date and writes the call stacks into a file of the shared
 * folder (layout/who.h), with the blocks of the pools if `blocks` is set. Without `blocks`, a
 * process that took no sample writes nothing. Only the helper thread may call this. */
void bfc_who_write(bool blocks);

struct bfc_who_library {
    const char *path; /* the innermost loaded object on the call stack that does not merely pass
                         calls on, as CUDA's runtime does; "": the executable */
    /* Bytes in use, as the program asked for. Exact with BFC_STACKS=all; else an estimate: the
     * bytes in use are shared out in proportion to the samples. */
    double bytes;
};

/* Lists at most `most` libraries whose allocations are in use, largest first, and returns how many;
 * 0 without samples. Takes time in proportion to the numbers of samples and of call stacks. */
size_t bfc_who_libraries(struct bfc_who_library *largest, size_t most);

#endif

/*
 * Writes parts of PyTorch's memory snapshot (`torch.cuda.memory._snapshot`): a dictionary of
 * `segments`, which are regions with their blocks, and `device_traces`, which are the calls, device
 * by device. The caller writes what is around these parts. Thread-safety: as pickle.h.
 */
#ifndef BFC_TOOLS_SNAPSHOT_H
#define BFC_TOOLS_SNAPSHOT_H

#include "tools/snapshot/pickle.h"

/* Sizes in bytes. */
struct snapshot_segment {
    uint32_t device; /* ordinal of the device */
    uint64_t address, size;
    uint64_t allocated; /* bytes of blocks that the program holds, padding included */
    uint64_t active; /* bytes of `allocated`, and of freed memory that the device may still use */
    uint64_t requested; /* bytes as the program requested them */
    bool expandable;    /* whether the segment is made of pages */
};

struct snapshot_block {
    uint64_t address, size;
    uint64_t requested; /* bytes as the program requested them; 0: a free block */
    enum { SNAPSHOT_ALLOCATED, SNAPSHOT_PENDING, SNAPSHOT_INACTIVE } state;
};

struct snapshot_call {
    const char *action; /* a text constant, one of PyTorch's words */
    /* the address of the block; for an out of memory, how many bytes the device had left */
    bool fails;
    uint64_t address, size, us;
};

/* Begins a segment. The caller then writes the list of blocks, and calls pickle_dict_end. */
void snapshot_begin_segment(struct pickle *pickle, const struct snapshot_segment *segment);

/* Begin a block or a call. The caller then writes the list of frames, and calls pickle_dict_end. */
void snapshot_begin_block(struct pickle *pickle, const struct snapshot_block *block);
void snapshot_begin_call(struct pickle *pickle, const struct snapshot_call *call);

/* Adds a frame to a list of frames. `file` must be valid for as long as the pickle is written. */
void snapshot_put_frame(struct pickle *pickle, struct pickle_list *frames, const char *name,
                        const char *file, uint64_t line);
void snapshot_put_no_frames(struct pickle *pickle);

#endif

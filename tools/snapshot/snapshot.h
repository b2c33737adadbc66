/*
 * Writes parts of a memory snapshot in PyTorch's format (`torch.cuda.memory._snapshot`), a pickled
 * dictionary. Its `segments` are memory regions with their blocks; its `device_traces` are lists of
 * allocations, frees and other calls, one for each device. The caller writes what is around these
 * parts.
 *
 * Thread-safety: as pickle.h.
 */
#ifndef BFC_TOOLS_SNAPSHOT_H
#define BFC_TOOLS_SNAPSHOT_H

#include "tools/snapshot/pickle.h"

/* A region of device memory. Sizes are in bytes. */
struct snapshot_segment {
    uint32_t device; /* number of the device */
    uint64_t address, size;
    uint64_t allocated; /* bytes of blocks that the program holds, padding included */
    uint64_t active;    /* `allocated`, and freed memory that work on the device may still use */
    uint64_t requested; /* bytes as the program requested them */
    bool expandable; /* whether its memory is mapped page by page (PyTorch's expandable segments) */
};

struct snapshot_block {
    uint64_t address, size;
    uint64_t requested; /* bytes as the program requested them; 0: a free block */
    enum { SNAPSHOT_ALLOCATED, SNAPSHOT_PENDING, SNAPSHOT_INACTIVE } state;
};

struct snapshot_call {
    const char *action; /* one of PyTorch's words for calls, such as "alloc"; a string constant */
    bool fails;         /* whether this is a failed allocation */
    /* `address` is that of the block or region; a failed allocation has none, so for it `address`
     * is how many bytes the device had left. `us` is the time in microseconds. */
    uint64_t address, size, us;
};

/* Begins a region. The caller then writes the list of its blocks, and calls pickle_dict_end. */
void snapshot_begin_segment(struct pickle *pickle, const struct snapshot_segment *segment);

/* Begin a block or a call. The caller then writes the list of frames of its call stack, and calls
 * pickle_dict_end. */
void snapshot_begin_block(struct pickle *pickle, const struct snapshot_block *block);
void snapshot_begin_call(struct pickle *pickle, const struct snapshot_call *call);

/* Adds a frame to a list of frames. `file` must stay valid until the pickle is complete.
 * snapshot_put_no_frames writes an empty list. */
void snapshot_put_frame(struct pickle *pickle, struct pickle_list *frames, const char *name,
                        const char *file, uint64_t line);
void snapshot_put_no_frames(struct pickle *pickle);

#endif

/*
 * The file that says which code holds the memory. A job writes it when a reader raises who_asked in
 * the header of the job's segment. If the reader has raised blocks_asked before, the file has the
 * blocks of the job's pools as well.
 *
 * The file is in the folder of the segments (BFC_ANSWER_NAME_FORMAT), with mode 0600. The job
 * writes it once, and all of it before the request counts as answered; the reader removes it.
 * docs/who.md describes it in words.
 *
 *   struct bfc_who_header
 *   struct bfc_who_site [sites]
 *   struct bfc_who_frame [frames]      a site's lie next to each other
 *   struct bfc_who_object [objects]    loaded objects, as they were when a frame lay in them
 *   struct bfc_who_region [regions]    these four only if blocks were asked for
 *   struct bfc_who_block [blocks]      a region's lie next to each other
 *   struct bfc_who_mark [living]       of sampled blocks that are in use
 *   struct bfc_who_mark [recent]       of the last samples, oldest first
 *   char [texts]                       NUL-terminated texts; the first is empty
 *
 * A reader must treat every number as untrusted.
 */
#ifndef BFC_LAYOUT_WHO_H
#define BFC_LAYOUT_WHO_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/file_name.h"

/* "BFCWHO" and a byte order tag. */
#define BFC_WHO_MAGIC UINT64_C(0x01024f4857434642)
#define BFC_WHO_VERSION 4u

struct bfc_who_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_size;
    uint32_t site_size, frame_size, object_size;
    int32_t pid;
    uint64_t sites, frames, objects; /* counts */
    uint64_t texts;                  /* bytes */
    uint64_t written_ns;             /* when the file was written: CLOCK_REALTIME */
    uint64_t stacks;                 /* BFC_STACKS: 0 off, 1 sample, 2 all */
    uint64_t samples;                /* a count: samples ever taken */
    uint64_t lost;                   /* samples that were lost because there was no room for them */
    uint64_t executable;             /* offset of the executable's path in the texts; an empty
                                        text: not known */
    uint64_t regions, blocks;        /* counts */
    uint64_t living, recent;         /* counts */
    uint64_t left_out;               /* bytes of regions for which there was no room */
    uint64_t in_use; /* bytes in use in all pools, as asked for, by the pools' own counters */
};

/* A call stack that allocates. Its blocks and bytes are unbiased estimates: sums of what each
 * sample stands for. With BFC_STACKS=all they are exact. */
struct bfc_who_site {
    uint64_t first;          /* index of its first frame; frames are innermost first */
    uint32_t native, python; /* counts: native frames, and behind them frames of Python */
    uint64_t samples;        /* how many samples were ever taken at this call stack */
    uint64_t live_samples;   /* how many of these samples have a block that is still in use */
    /* blocks and bytes that were ever allocated; bytes as the program requested them */
    double blocks, bytes;
    double live_blocks, live_bytes;
    double live_variance; /* variance of live_bytes, in bytes squared: its root is the standard
                             error */
    uint32_t tag; /* offset in the texts: what the thread said that it was doing; empty: nothing */
    uint32_t zero;
};

/* In a native frame `place` is an address relative to the object's start, or absolute if there is
 * no object. A frame of Python has offsets in the texts, and a line. */
struct bfc_who_frame {
    uint32_t object; /* native: index + 1; 0: none. Python: the function's name */
    uint32_t file;   /* Python: the file's name */
    uint64_t place;  /* native: address of the call. Python: the line */
};

struct bfc_who_object {
    uint64_t start, end; /* addresses where the object was loaded */
    uint32_t path; /* offset of the object's path in the texts; an empty path: the object is the
                      executable */
    uint32_t zero;
};

/* Memory of the device that a pool has in one piece, and that its blocks tile; with pages, a range
 * of addresses. The job reads the blocks one after the other while it runs, so they show one moment
 * only if its other threads do not allocate or free meanwhile. */
struct bfc_who_region {
    uint64_t start, size; /* bytes */
    uint64_t first;       /* index of its first block; blocks are in address order */
    uint64_t blocks;      /* a count */
    uint32_t pool;        /* index of the pool's section in the segment */
    uint32_t paged;       /* 0 or 1 */
};

enum bfc_who_state {
    BFC_WHO_IN_USE,
    BFC_WHO_READY,
    BFC_WHO_PENDING, /* pending or deferred */
    BFC_WHO_BARE,    /* there is no page behind the block's addresses */
};

struct bfc_who_block {
    uint64_t start, size; /* bytes, padding included */
    uint64_t requested;   /* bytes that the program requested; 0: the block is free */
    uint64_t id;          /* id of the block, unique in the process; 0: the block is free */
    uint64_t state;       /* enum bfc_who_state */
};

/* Where a sampled block was allocated. */
struct bfc_who_mark {
    uint64_t of; /* `living`: the block's id; `recent`: the number of the allocation's event */
    uint64_t site;
};

/* Does the loaded object with this path only pass calls on, so that its caller counts as the one
 * that allocates? */
static inline bool bfc_who_hands_on(const char *path) {
    static const char *const names[] = {"libcudart", "libcuda.so", "libffi"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(bfc_file_name(path), names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

_Static_assert(sizeof(struct bfc_who_header) == 152, "no padding: other processes read this");
_Static_assert(sizeof(struct bfc_who_site) == 80, "no padding");
_Static_assert(sizeof(struct bfc_who_frame) == 16, "no padding");
_Static_assert(sizeof(struct bfc_who_object) == 24, "no padding");
_Static_assert(sizeof(struct bfc_who_region) == 40, "no padding");
_Static_assert(sizeof(struct bfc_who_block) == 40, "no padding");
_Static_assert(sizeof(struct bfc_who_mark) == 16, "no padding");

#endif

/*
 * The file that says which code holds the memory of a job. A reader requests it by who_asked in
 * the job's segment (layout/segment.h), and the job's helper thread writes it. If the reader has
 * added 1 to blocks_asked before, the file also has the blocks of the job's pools.
 *
 * The file is in the folder of the segments (BFC_ANSWER_NAME_FORMAT), with mode 0600. It is
 * complete before the request counts as answered. The reader removes it. docs/who.md tells users
 * what is in it.
 *
 * The file consists of these arrays, whose lengths are fields of the header. The four arrays from
 * `regions` on are empty unless the reader asked for blocks.
 *
 *   struct bfc_who_header
 *   struct bfc_who_site [sites]        the call stacks that allocated
 *   struct bfc_who_frame [frames]      the frames of the first site, of the second, and so on
 *   struct bfc_who_object [objects]    loaded objects (libraries), and some unloaded since
 *   struct bfc_who_region [regions]
 *   struct bfc_who_block [blocks]      the blocks of the first region, of the second, and so on
 *   struct bfc_who_mark [living]       the call stacks of sampled blocks that are in use
 *   struct bfc_who_mark [recent]       the call stacks of the latest samples, oldest first
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

/* The characters "BFCWHO", 2 and 1. In a file of the other byte order the number differs, so a
 * reader refuses the file. */
#define BFC_WHO_MAGIC UINT64_C(0x01024f4857434642)
#define BFC_WHO_VERSION 4u

struct bfc_who_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_size;
    uint32_t site_size, frame_size, object_size;
    int32_t pid;
    uint64_t sites, frames, objects; /* lengths of the arrays of sites, frames and objects */
    uint64_t texts;                  /* size of the array of texts in bytes */
    uint64_t written_ns;             /* when the file was written: nanoseconds of CLOCK_REALTIME */
    uint64_t stacks;                 /* the job's setting BFC_STACKS: 0 off, 1 sample, 2 all */
    /* how many samples (call stacks of allocations) the job has taken since it began */
    uint64_t samples;
    uint64_t lost; /* how many samples were lost because the job's tables were full */
    /* Offset in the array `texts` of the executable's path. An empty text there means that the path
     * is not known. */
    uint64_t executable;
    uint64_t regions, blocks; /* lengths of the arrays of regions and blocks */
    uint64_t living, recent;  /* lengths of the arrays `living` and `recent` */
    /* bytes of all regions that the file lacks because the job's buffer was full */
    uint64_t left_out;
    /* bytes that the program requested in all blocks in use, exact, as the pools count them */
    uint64_t in_use;
};

/* A distinct call stack that allocates. Its blocks and bytes are estimates without bias: each
 * sample counts for as many blocks as it represents. With BFC_STACKS=all they are exact. */
struct bfc_who_site {
    /* Index in the array of frames of the stack's first frame, which is the innermost. The other
     * frames follow. */
    uint64_t first;
    /* how many native frames the stack has, and how many frames of Python after them */
    uint32_t native, python;
    uint64_t samples; /* how many samples the job has ever taken at this call stack */
    /* how many samples of this call stack are of blocks that are still in use */
    uint64_t live_samples;
    /* all blocks ever allocated at this call stack, and the bytes that the program requested in
     * them */
    double blocks, bytes;
    double live_blocks, live_bytes;
    /* the variance of live_bytes, in bytes squared; its square root is the standard error */
    double live_variance;
    /* Offset in the array `texts` of the tag that the thread had set when it allocated. An empty
     * text there means that it had set none. */
    uint32_t tag;
    uint32_t zero;
};

/* A frame is either native or of Python. In a native frame, `place` is an address relative to the
 * object's start; if `object` is 0, an absolute address. In a frame of Python, `object` and `file`
 * are offsets in the texts. */
struct bfc_who_frame {
    /* native: the index of the loaded object plus 1, or 0 for none; Python: the offset in `texts`
     * of the function's name */
    uint32_t object;
    uint32_t file;  /* native: not used; Python: the offset in `texts` of the file's name */
    uint64_t place; /* native: the address of the call; Python: the line number */
};

struct bfc_who_object {
    uint64_t start, end; /* the object was loaded at the addresses from `start` to before `end` */
    /* Offset in the array `texts` of the object's path. An empty text there means that the object
     * is the executable. */
    uint32_t path;
    uint32_t zero;
};

/* A range of addresses that a pool took from the device in one call, and that is divided into
 * blocks without gaps. With BFC_BACKING=pages it is a reservation of addresses. The job copies the
 * blocks one after the other, so the copy is consistent only if no thread allocates or frees
 * meanwhile. */
struct bfc_who_region {
    uint64_t start, size; /* the region's first address, and its size in bytes */
    /* Index in the array of blocks of the region's first block. The region's other blocks follow in
     * the order of their addresses. */
    uint64_t first;
    uint64_t blocks; /* how many blocks the region has */
    uint32_t pool;   /* index of the pool's section in the segment (layout/segment.h) */
    /* 1: the region is a reservation of addresses with pages behind it; 0: it is not */
    uint32_t paged;
};

enum bfc_who_state {
    BFC_WHO_IN_USE,
    BFC_WHO_READY,
    BFC_WHO_PENDING, /* the block is free, but work on the device may still use it */
    BFC_WHO_BARE,    /* the block is free addresses without memory behind them */
};

struct bfc_who_block {
    uint64_t start, size; /* the block's first address, and its size in bytes, padding included */
    uint64_t requested;   /* bytes that the program requested; 0: the block is free */
    /* number of the block, which no other block of the process has; 0: the block is free */
    uint64_t id;
    uint64_t state; /* a value of enum bfc_who_state */
};

/* Says at which call stack a sampled block was allocated. */
struct bfc_who_mark {
    /* in the array `living`: the block's id; in the array `recent`: the number of the event of the
     * allocation in the segment */
    uint64_t of;
    uint64_t site;
};

/* Returns whether the object with this path, such as libcudart, only passes calls on. If so, its
 * caller counts as the code that allocates. */
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

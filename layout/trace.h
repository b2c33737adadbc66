/*
 * The trace file. A job with BFC_RECORD writes it, and bfcplan and bfcreplay read it.
 *
 * The file consists of a header, and then of blocks of bytes until its end. A block is a struct
 * bfc_trace_block and a payload behind it, which may be compressed as one zstd frame. There are
 * three kinds of blocks. A block of records has allocations, frees and other calls in order. A
 * block of stacks has the rows that the tables of call stacks (layout/who.h) have gained since the
 * last block of stacks; it stands before the first record that refers to one of these rows. A block
 * of settings has the variables of the recorded job. A reader skips blocks of kinds that it does
 * not know.
 *
 * A recorder fills a block in memory, compresses it and appends it with one write, so a full disk
 * or a killed job loses at most whole blocks at the end. A reader accepts a file that ends in the
 * middle of a block, or in zeros where a block should begin, and reports that the end is missing.
 * It refuses a file that is damaged elsewhere.
 *
 * Numbers are in the byte order of the machine that wrote the file. Any change of this layout
 * raises the version.
 */
#ifndef BFC_LAYOUT_TRACE_H
#define BFC_LAYOUT_TRACE_H

#include <assert.h>
#include <stdint.h>

#define BFC_TRACE_MAGIC "BFCTRAC"
#define BFC_TRACE_VERSION 4
/* The oldest version that readers accept. In version 1 the field `memory` of a record is zero.
 * Before version 3 all blocks are blocks of records. Before version 4 `device_bytes` is zero, and
 * there are no blocks of settings. */
#define BFC_TRACE_OLDEST_VERSION 1
#define BFC_TRACE_BYTE_ORDER 0x01020304u
#define BFC_TRACE_BLOCK_MAGIC 0x4b4c4254u /* "TBLK" on a little-endian machine */
#define BFC_TRACE_MOST_RECORDS 65536u     /* the most records that one block may have */
/* the most bytes of unpacked payload that a block of stacks or settings may have */
#define BFC_TRACE_MOST_STACKS (1u << 20)
#define BFC_TRACE_WEIGHT_UNIT (1.0 / (1 << 20))

struct bfc_trace_header {
    char magic[8]; /* the characters of BFC_TRACE_MAGIC and a zero byte */
    uint32_t version;
    /* BFC_TRACE_BYTE_ORDER, in the byte order of the machine that wrote the file */
    uint32_t byte_order;
    uint32_t record_bytes; /* always sizeof(struct bfc_trace_record) */
    uint32_t process;      /* process id of the recorded job */
    uint64_t rounding; /* the recorded pool rounded all sizes up to a multiple of this many bytes */
    uint64_t executable_hash; /* hash of the executable's path and build id; 0: unknown */
    uint64_t argument_hash;   /* hash of the program's arguments; 0: unknown */
    uint64_t started;         /* when recording began, in nanoseconds since 1970; 0: unknown */
    char device[64];          /* the name of device 0, zero-terminated */
    uint64_t device_bytes;    /* bytes of memory that device 0 has; 0: unknown */
};

enum bfc_trace_codec { BFC_TRACE_PLAIN = 0, BFC_TRACE_ZSTD = 1 };

enum bfc_trace_kind {
    /* the payload is an array of struct bfc_trace_record */
    BFC_TRACE_RECORDS = 0,
    /* The payload is a struct bfc_trace_counts, then as many sites, frames, objects and bytes of
     * texts as it says, in the formats of layout/who.h. The counts and sums in a site are 0,
     * because they still change while the job runs. */
    BFC_TRACE_STACKS = 1,
    /* the payload is text: a line NAME=value for each setting of the recorded job */
    BFC_TRACE_SETTINGS = 2,
};

struct bfc_trace_block {
    uint32_t magic; /* always BFC_TRACE_BLOCK_MAGIC */
    uint16_t codec; /* how the payload is stored: a value of enum bfc_trace_codec */
    uint16_t kind;  /* what the payload is: a value of enum bfc_trace_kind */
    /* In a block of records, the number of records, from 1 to BFC_TRACE_MOST_RECORDS. In a block of
     * another kind, the bytes of the unpacked payload, at most BFC_TRACE_MOST_STACKS. */
    uint32_t records;
    uint32_t bytes; /* bytes of the payload in the file, where it follows this structure */
    /* sequence number of the first record in a block of records; 0 in blocks of other kinds */
    uint64_t first;
    uint64_t sum; /* hash of the payload as it stands in the file (bfc_trace_sum) */
};

/* How many rows a block of stacks adds to each table; `texts` counts bytes. */
struct bfc_trace_counts {
    uint32_t sites, frames, objects, texts;
    /* Offset of the executable's path in the texts of all blocks together. An empty text there
     * means that the path was not known yet. */
    uint32_t executable;
    uint32_t zero;
};

enum bfc_trace_op {
    /* an allocation: `serial` is its new number, and `bytes` are what the program requested */
    BFC_TRACE_ALLOCATE = 0,
    BFC_TRACE_FREE = 1, /* a free: `serial` is the number of the allocation whose block is freed */
    BFC_TRACE_WAIT = 2, /* not written yet: the host waited for the device */
    /* not written yet: a CUDA event was recorded on the stream; `serial` is the event's number */
    BFC_TRACE_EVENT = 3,
    BFC_TRACE_OUT_OF_MEMORY = 4, /* an allocation of `bytes` bytes failed; `serial` is not used */
    /* The call stack of an earlier allocation, the one with this `serial`. `stream` is the index of
     * the stack in the table of sites (layout/who.h). Only some allocations get such a record;
     * `bytes` says how many blocks the record stands for, in units of BFC_TRACE_WEIGHT_UNIT. */
    BFC_TRACE_STACK = 5,
    BFC_TRACE_OPS
};

enum bfc_trace_memory {
    BFC_TRACE_DEVICE_MEMORY = 0,
    /* host memory that was handed out because the device was full (BFC_SPILL) */
    BFC_TRACE_HOST_MEMORY = 1,
    BFC_TRACE_MEMORIES
};

struct bfc_trace_record {
    /* rises by 1 with each record of the process, so a gap means that records were lost */
    uint64_t sequence;
    uint64_t serial; /* number of the allocation, which no other allocation of the process has */
    uint64_t bytes;
    /* Number of the calling thread. Threads are numbered 0, 1, 2, … in the order of their first
     * recorded call. */
    uint32_t thread;
    /* Number of the stream. Streams are numbered 1, 2, … in the order of their first recorded use.
     * 0: the default stream, or the call has no stream. */
    uint32_t stream;
    uint16_t device;
    uint16_t op;       /* a value of enum bfc_trace_op */
    uint16_t memory;   /* for an allocation a value of enum bfc_trace_memory */
    uint16_t reserved; /* always zero */
};

static_assert(sizeof(struct bfc_trace_header) == 128, "the trace's header has a fixed size");
static_assert(sizeof(struct bfc_trace_block) == 32, "the trace's block head has a fixed size");
static_assert(sizeof(struct bfc_trace_counts) == 24, "the counts of stacks have a fixed size");
static_assert(sizeof(struct bfc_trace_record) == 40, "the trace's record has a fixed size");

/* Returns the 64-bit FNV-1a hash of the bytes. */
static inline uint64_t bfc_trace_sum(const void *bytes, uint64_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t sum = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    return sum;
}

#endif

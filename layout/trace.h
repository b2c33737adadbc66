/*
 * The trace file: a recording job writes it, and bfcplan and bfcreplay read it.
 *
 * The file consists of a header, and then of blocks until its end. A block is a small head and its
 * payload: records one after another, as they are or as one zstd frame. A block of another kind
 * holds call stacks: the rows that the tables of layout/who.h have gained since the last such
 * block. It stands before the first record that refers to it. A third kind holds the settings of
 * the recorded job. A reader skips blocks of kinds that it does not know. A recorder fills a block
 * in memory, compresses it and appends it with one write, so a full disk or a killed job loses at
 * most whole blocks at the end. A reader accepts a file that ends in the middle of a block, or in
 * zeros where one should begin, and reports that the tail is missing; damage before the tail is an
 * error.
 *
 * Numbers are in the byte order of the machine that wrote the file. Any change raises the version.
 */
#ifndef BFC_LAYOUT_TRACE_H
#define BFC_LAYOUT_TRACE_H

#include <assert.h>
#include <stdint.h>

#define BFC_TRACE_MAGIC "BFCTRAC"
#define BFC_TRACE_VERSION 4
/* Readers accept this version too: its records have zero in place of `memory`. Up to version 2, all
 * blocks are of records; up to version 3, `device_bytes` is zero and no block is of settings. */
#define BFC_TRACE_OLDEST_VERSION 1
#define BFC_TRACE_BYTE_ORDER 0x01020304u
#define BFC_TRACE_BLOCK_MAGIC 0x4b4c4254u /* "TBLK" on a little-endian machine */
#define BFC_TRACE_MOST_RECORDS 65536u     /* the most records in one block */
#define BFC_TRACE_MOST_STACKS (1u << 20)  /* the most bytes of stacks or settings in one block */
#define BFC_TRACE_WEIGHT_UNIT (1.0 / (1 << 20))

struct bfc_trace_header {
    char magic[8]; /* BFC_TRACE_MAGIC and a zero byte */
    uint32_t version;
    uint32_t byte_order;      /* BFC_TRACE_BYTE_ORDER as its writer stores it */
    uint32_t record_bytes;    /* sizeof(struct bfc_trace_record) */
    uint32_t process;         /* process id */
    uint64_t rounding;        /* bytes: the pool's granule */
    uint64_t executable_hash; /* hash of the executable's path and build id; 0: unknown */
    uint64_t argument_hash;   /* hash of the program's arguments; 0: unknown */
    uint64_t started;         /* nanoseconds since 1970; 0: unknown */
    char device[64];          /* name of device 0, zero-terminated */
    uint64_t device_bytes;    /* memory of device 0; 0: unknown */
};

enum bfc_trace_codec { BFC_TRACE_PLAIN = 0, BFC_TRACE_ZSTD = 1 };

enum bfc_trace_kind {
    /* the block consists of structures bfc_trace_record, one after another */
    BFC_TRACE_RECORDS = 0,
    BFC_TRACE_STACKS = 1,   /* struct bfc_trace_counts, and behind it so many sites, frames, objects
                               and texts, as in layout/who.h, but without sums */
    BFC_TRACE_SETTINGS = 2, /* lines NAME=value, one for each variable, as they were in force */
};

struct bfc_trace_block {
    uint32_t magic; /* BFC_TRACE_BLOCK_MAGIC */
    uint16_t codec; /* enum bfc_trace_codec */
    uint16_t kind;  /* enum bfc_trace_kind */
    /* In a block of records: their count, 1 to BFC_TRACE_MOST_RECORDS. In other blocks: bytes of
     * the unpacked payload, at most BFC_TRACE_MOST_STACKS. */
    uint32_t records;
    uint32_t bytes; /* bytes that the payload, which follows, takes in the file */
    uint64_t first; /* sequence of the block's first record; 0 in other blocks */
    uint64_t sum;   /* bfc_trace_sum of the payload as stored */
};

/* How many rows each table gains; `texts` is in bytes. */
struct bfc_trace_counts {
    uint32_t sites, frames, objects, texts;
    uint32_t executable; /* offset of the executable's path in all texts; an empty text: not
                            known yet */
    uint32_t zero;
};

enum bfc_trace_op {
    BFC_TRACE_ALLOCATE = 0, /* an allocation: its serial is new, and its bytes are those that the
                               program requested */
    BFC_TRACE_FREE = 1,     /* a free: its serial is that of the allocation that ends */
    BFC_TRACE_WAIT = 2,     /* the host waited for the device; serial and bytes are not used */
    BFC_TRACE_EVENT = 3,    /* an event was recorded on the stream; serial: the event's number */
    BFC_TRACE_OUT_OF_MEMORY = 4, /* an allocation of so many bytes failed; the serial is not used */
    BFC_TRACE_STACK = 5, /* the call stack of an earlier allocation with this serial: `stream` is
                            the site's index, and `bytes` is how many blocks the sample stands for,
                            in BFC_TRACE_WEIGHT_UNITs */
    BFC_TRACE_OPS
};

enum bfc_trace_memory {
    BFC_TRACE_DEVICE_MEMORY = 0,
    BFC_TRACE_HOST_MEMORY = 1, /* host memory, because the device was full (BFC_SPILL) */
    BFC_TRACE_MEMORIES
};

struct bfc_trace_record {
    uint64_t sequence; /* rises by one with each record of the process; a gap means that records
                          were lost */
    uint64_t serial;   /* number of the allocation, unique in the process */
    uint64_t bytes;
    uint32_t thread; /* the process's threads are numbered 0, 1, … as they are first seen */
    uint32_t stream; /* the process's streams are numbered as they are first seen; 0: the default
                        stream, or the call has no stream */
    uint16_t device;
    uint16_t op;       /* enum bfc_trace_op */
    uint16_t memory;   /* enum bfc_trace_memory of an allocation */
    uint16_t reserved; /* zero */
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

/*
 * The trace file: what a recording job writes and bfcplan and bfcreplay read.
 *
 * A header, then blocks until the end of the file. A block is a small head and its payload: records
 * one after another, as they are or as one zstd frame. A recorder fills a block in memory,
 * compresses it and appends it with one write, so a full disk or a killed job loses at most whole
 * blocks at the end. A reader accepts a file that ends in the middle of a block, or in zeros where
 * one should begin, and reports that the tail is missing; damage before the tail is an error.
 *
 * Numbers are in the byte order of the machine that wrote the file. Any change raises the version.
 */
#ifndef BFC_LAYOUT_TRACE_H
#define BFC_LAYOUT_TRACE_H

#include <assert.h>
#include <stdint.h>

#define BFC_TRACE_MAGIC "BFCTRAC"
#define BFC_TRACE_VERSION 2
/* Readers take this one too: its records have no `memory`, but zero there. */
#define BFC_TRACE_OLDEST_VERSION 1
#define BFC_TRACE_BYTE_ORDER 0x01020304u
#define BFC_TRACE_BLOCK_MAGIC 0x4b4c4254u /* "TBLK" on a little-endian machine */
#define BFC_TRACE_MOST_RECORDS 65536u     /* in a block */

struct bfc_trace_header {
    char magic[8]; /* BFC_TRACE_MAGIC and a zero byte */
    uint32_t version;
    uint32_t byte_order;      /* BFC_TRACE_BYTE_ORDER as its writer stores it */
    uint32_t record_bytes;    /* sizeof(struct bfc_trace_record) */
    uint32_t process;         /* its id */
    uint64_t rounding;        /* bytes: the pool's granule */
    uint64_t executable_hash; /* of its path and build id; 0: unknown */
    uint64_t argument_hash;   /* of its arguments; 0: unknown */
    uint64_t started;         /* nanoseconds since 1970; 0: unknown */
    char device[64];          /* name of device 0, zero-terminated */
    uint64_t reserved;        /* zero */
};

enum bfc_trace_codec { BFC_TRACE_PLAIN = 0, BFC_TRACE_ZSTD = 1 };

struct bfc_trace_block {
    uint32_t magic;   /* BFC_TRACE_BLOCK_MAGIC */
    uint32_t codec;   /* enum bfc_trace_codec */
    uint32_t records; /* 1 to BFC_TRACE_MOST_RECORDS */
    uint32_t bytes;   /* of the payload that follows */
    uint64_t first;   /* sequence of its first record */
    uint64_t sum;     /* bfc_trace_sum of the payload as stored */
};

enum bfc_trace_op {
    BFC_TRACE_ALLOCATE = 0, /* serial is new; bytes as requested */
    BFC_TRACE_FREE = 1,     /* serial of the allocation that ends */
    BFC_TRACE_WAIT = 2,     /* the host waited for the device; serial, bytes unused */
    BFC_TRACE_EVENT = 3,    /* an event was recorded on the stream; serial: the event's number */
    BFC_TRACE_OUT_OF_MEMORY = 4, /* bytes were refused; serial unused */
    BFC_TRACE_OPS
};

enum bfc_trace_memory {
    BFC_TRACE_DEVICE_MEMORY = 0,
    BFC_TRACE_HOST_MEMORY = 1, /* in place of the device's, which was full (BFC_SPILL) */
    BFC_TRACE_MEMORIES
};

struct bfc_trace_record {
    uint64_t sequence; /* rises by one with each record of the process; a gap means that records
                          were lost */
    uint64_t serial;   /* of the allocation: unique in the process */
    uint64_t bytes;
    uint32_t thread; /* of the process, numbered 0, 1, … as they are first seen */
    uint32_t stream; /* likewise; 0: the default stream, or the call has none */
    uint16_t device;
    uint16_t op;       /* enum bfc_trace_op */
    uint16_t memory;   /* of an allocation: enum bfc_trace_memory */
    uint16_t reserved; /* zero */
};

static_assert(sizeof(struct bfc_trace_header) == 128, "the trace's header has a fixed size");
static_assert(sizeof(struct bfc_trace_block) == 32, "the trace's block head has a fixed size");
static_assert(sizeof(struct bfc_trace_record) == 40, "the trace's record has a fixed size");

/* FNV-1a, 64 bit. */
static inline uint64_t bfc_trace_sum(const void *bytes, uint64_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t sum = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    return sum;
}

#endif

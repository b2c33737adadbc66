/*
 * The shared-memory segment that a job publishes: its layout, for the job and for readers alike.
 *
 * One segment a process, made at the first CUDA allocation that is seen, mode 0600, in POSIX shared
 * memory under the name that bfc_segment_name's format gives. The job alone writes; a reader maps
 * it read-only, except for the request word, and must treat each value as untrusted: the header's
 * sizes and counts are compared with the constants below before anything else is read.
 *
 *   offset 0                      struct bfc_segment_header
 *   BFC_SEGMENT_POOLS_OFFSET      struct bfc_segment_pool [BFC_SEGMENT_POOLS]
 *
 * Consistency: identity and configuration are complete before `magic` is written, and then
 * constant. A pool's section carries its own sequence number (pool/stats.h). Process-wide counters
 * are single 64-bit words, each right by itself.
 *
 * Liveness: `owner` is a robust futex held by the job's helper thread for as long as the process
 * lives; the kernel sets FUTEX_OWNER_DIED in it when the process dies in whatever way. Where no
 * helper thread could be had it is 0, and the pid with its start time tells (same pid namespace
 * only).
 */
#ifndef BFC_INTERPOSE_SEGMENT_LAYOUT_H
#define BFC_INTERPOSE_SEGMENT_LAYOUT_H

#include <stdint.h>

#include "pool/stats.h"

/* "BFCSEG" and a byte-order mark: a segment of the other byte order does not match. */
#define BFC_SEGMENT_MAGIC UINT64_C(0x0102474553434642)
#define BFC_SEGMENT_VERSION 1u

/* shm_open's name: user id, pid namespace (inode number), pid in that namespace. */
#define BFC_SEGMENT_NAME_FORMAT "/bfcpreload.%u.%lu.%d"
#define BFC_SEGMENT_NAME_PREFIX "bfcpreload."

#define BFC_SEGMENT_POOLS 32u

enum bfc_pool_state {
    BFC_POOL_UNUSED = 0,
    BFC_POOL_ACTIVE = 1,
    BFC_POOL_ENDED = 2, /* its context has ended; the counters stay as they were */
};

/* Why an allocation or free that we saw went to the driver. */
enum bfc_forward_reason {
    BFC_FORWARD_DISABLED,   /* BFC_DISABLE, BFC_ONLY, BFC_NOT, or a fork's child, or after exit */
    BFC_FORWARD_NO_CONTEXT, /* no current context: the driver has its own answer */
    BFC_FORWARD_OLD_DRIVER, /* the driver lacks a call that we need */
    BFC_FORWARD_FOREIGN,    /* a free of a pointer that is not ours */
    BFC_FORWARD_BAD_CALL,   /* arguments that only the driver can answer (NULL, zero) */
    BFC_FORWARD_NO_HOST_MEMORY,
    BFC_FORWARD_TOO_LARGE, /* more than the device has, or the pool could not get it */
    BFC_FORWARD_CAPTURE,   /* barred by a stream capture: the driver has its own answer */
    BFC_FORWARD_EXPORTS,   /* BFC_IPC=off, and the process has exported */
    BFC_FORWARD_BYPASSED,  /* above BFC_BYPASS_ABOVE */
    BFC_FORWARD_REASONS = 16,
};

/* Allocations that never pass through the pool, by kind. */
enum bfc_bypass_kind {
    BFC_BYPASS_ASYNC,
    BFC_BYPASS_MANAGED,
    BFC_BYPASS_VMM,
    BFC_BYPASS_ARRAY,
    BFC_BYPASS_PITCH,
    BFC_BYPASS_V1,
    BFC_BYPASS_HOST,
    BFC_BYPASS_UNKNOWN_ENTRY, /* an allocator entry point that was recognised by neither name nor
                                 pointer */
    BFC_BYPASS_KINDS = 16,
};

struct bfc_segment_pool {
    uint64_t state;        /* enum bfc_pool_state */
    int64_t device;        /* ordinal, as the process numbers its devices */
    uint64_t context_id;   /* cuCtxGetId's, or a number of ours where the driver lacks it */
    uint64_t device_total; /* bytes */
    uint8_t device_uuid[16];
    char device_name[64]; /* NUL-terminated */
    /* Calls of the program that the pool answered, and what they cost at the driver. */
    uint64_t host_waits; /* waits for the context, made for frees */
    uint64_t host_wait_ns;
    struct bfc_pool_stats stats;
};

struct bfc_segment_header {
    uint64_t magic; /* written last, when all of the constant part is there */
    uint32_t version;
    uint32_t header_size; /* sizeof(struct bfc_segment_header) */
    uint64_t total_size;  /* bytes, of the whole segment */
    uint32_t pool_size;   /* sizeof(struct bfc_segment_pool) */
    uint32_t pool_count;  /* BFC_SEGMENT_POOLS */

    /* Who. */
    int32_t pid; /* in its own pid namespace */
    uint32_t uid;
    uint64_t pid_namespace; /* inode number */
    uint64_t start_time;    /* of the process: clock ticks after boot, field 22 of /proc/PID/stat */
    uint64_t created_ns;    /* of the segment: CLOCK_REALTIME */
    char command[256];      /* the arguments, joined by blanks, cut off, NUL-terminated */
    char library[32];       /* our version */

    /* Configuration in force, as NAME=value lines; and complaints about malformed variables. */
    char configuration[2048];
    uint32_t configuration_errors;

    /* Liveness and requests. */
    uint32_t owner; /* robust futex, see above */
    uint32_t
        request; /* the request word: 0 asleep; a reader adds 1 and wakes it to ask for a trim */
    uint32_t request_served; /* the value of `request` that the helper thread has last served */
    uint64_t request_bytes;  /* how much is wanted back: added to by readers */
    uint64_t released_bytes; /* how much went back on requests, ever */

    /* Process-wide counters. */
    /* By pools whose section was given to a later context: add the counts of the sections. */
    uint64_t pooled_allocations;
    uint64_t pooled_frees;
    uint64_t forwarded_allocations[BFC_FORWARD_REASONS];
    uint64_t forwarded_frees[BFC_FORWARD_REASONS];
    uint64_t bypassed_calls[BFC_BYPASS_KINDS];
    uint64_t bypassed_bytes[BFC_BYPASS_KINDS];
    uint64_t reserved_for_growth[64]; /* zero */
};

#define BFC_SEGMENT_POOLS_OFFSET 4096u
#define BFC_SEGMENT_SIZE                                                                           \
    (BFC_SEGMENT_POOLS_OFFSET + BFC_SEGMENT_POOLS * (uint64_t)sizeof(struct bfc_segment_pool))

_Static_assert(sizeof(struct bfc_segment_pool) == 32 + 16 + 64 + 16 + sizeof(struct bfc_pool_stats),
               "no padding: other processes read this");
_Static_assert(sizeof(struct bfc_segment_header) <= BFC_SEGMENT_POOLS_OFFSET,
               "the header fits before the pools");

#endif

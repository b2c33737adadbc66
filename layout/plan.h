/*
 * The plan file. bfcplan writes it, and a job whose BFC_PLAN names the file reads it.
 *
 * The file consists of a header and three tables: arenas (ranges of memory with a plan each),
 * events (the planned allocations in order), and anchors (events unlike all others). Each table
 * starts at a multiple of 64 bytes. Numbers are in the byte order of the machine that wrote the
 * file: a reader with the other byte order sees byte_order swapped, and refuses the file. Any
 * change of this layout raises BFC_PLAN_VERSION.
 *
 * A plan is a hint: a job serves a planned address only if that address is free, so safety does not
 * depend on anything in the file. The checksum only detects damage: a job with a damaged plan would
 * get useless addresses.
 *
 * A plan of a loop has a prefix, the allocations before the loop, and a period, one repetition of
 * the loop. A job goes through events[0, prefix) once, and then through events[prefix, prefix +
 * period) again and again. A plan without a period holds a whole run. An event's offset counts from
 * the start of the event's arena.
 *
 * A plan of a recorded run (flag BFC_PLAN_FROM_TRACE) has up to two arenas for each device: one for
 * blocks below BFC_PLAN_LARGE bytes, and one for larger blocks. Sizes are rounded by
 * bfc_plan_round, and offsets in the arena of larger blocks are multiples of BFC_PLAN_LARGE. A job
 * puts the arenas of a device one after the other into one range of memory; each begins at a
 * multiple of BFC_PLAN_LARGE.
 */
#ifndef BFC_LAYOUT_PLAN_H
#define BFC_LAYOUT_PLAN_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mix.h"

#define BFC_PLAN_MAGIC "BFCPLAN"
#define BFC_PLAN_VERSION 2
#define BFC_PLAN_BYTE_ORDER 0x01020304u
#define BFC_PLAN_TABLE_ALIGN 64
/* A plan rounds sizes up to a multiple of BFC_PLAN_SMALL bytes; if the result is BFC_PLAN_LARGE
 * bytes or more, up to a multiple of BFC_PLAN_LARGE. */
#define BFC_PLAN_SMALL ((uint64_t)1 << 9)
#define BFC_PLAN_LARGE ((uint64_t)1 << 16)

enum bfc_plan_class {
    BFC_PLAN_LIFELONG = 0, /* the block lives to the end of the run */
    /* the block is freed after the end of the prefix or repetition in which it was allocated */
    BFC_PLAN_CROSSING = 1,
    /* the block is freed in the same prefix or repetition in which it was allocated */
    BFC_PLAN_PERIOD = 2,
    /* the plan has no offset for the allocation, so the pool serves it as it would without a
     * plan */
    BFC_PLAN_UNPLANNED = 3,
    BFC_PLAN_CLASSES
};

enum bfc_plan_flags {
    /* The plan was made from a recorded run, so a job can follow it. Without this flag, it was made
     * from a list of lifetimes. */
    BFC_PLAN_FROM_TRACE = 1,
    /* Sizes differ between repetitions. Each event has the size that it is planned with: the one
     * that most repetitions have, or the largest. */
    BFC_PLAN_JITTER = 2,
};

struct bfc_plan_header {
    char magic[8];    /* the characters of BFC_PLAN_MAGIC and a zero byte */
    uint32_t version; /* always BFC_PLAN_VERSION; readers refuse other versions */
    /* BFC_PLAN_BYTE_ORDER, in the byte order of the machine that wrote the file */
    uint32_t byte_order;
    uint64_t checksum;     /* hash of the file (bfc_plan_checksum) */
    uint64_t file_bytes;   /* size of the whole file in bytes */
    uint64_t source_hash;  /* hash of the lifetimes and constraints that the plan was made from */
    uint64_t program_hash; /* hash of the recorded executable and its arguments; 0: unknown */
    /* the lower bound: bytes that every plan needs at least, summed over all arenas */
    uint64_t bound;
    uint64_t peak;  /* bytes that this plan needs, summed over all arenas */
    uint64_t align; /* bytes: all offsets and sizes are multiples of this */
    /* two allocations of different streams may share memory only if more than this many ticks lie
     * between the end of one and the beginning of the other */
    uint64_t gap;
    uint64_t arenas_at; /* where the table of arenas begins, in bytes from the start of the file */
    uint64_t events_at;
    uint64_t anchors_at;
    uint32_t arenas; /* number of arenas in the file */
    uint32_t events;
    uint32_t anchors;
    uint32_t prefix;       /* number of events before the first repetition */
    uint32_t period;       /* number of events of one repetition; 0: the plan has no period */
    uint32_t flags;        /* a combination of values of enum bfc_plan_flags */
    uint64_t period_birth; /* the tick at which the first repetition begins */
    uint64_t period_ticks; /* length of a repetition in ticks; 0: the plan has no period */
};

/* A range of memory in which a plan places blocks: in a plan made from a list of lifetimes, one of
 * the memories (spaces) that the list names; else the small or the large blocks of a device. */
struct bfc_plan_arena {
    uint64_t bound; /* the lower bound: bytes that every plan of the arena needs at least */
    uint64_t peak;  /* bytes that this plan needs, so a job reserves this many for the arena */
    uint32_t device;
    uint32_t events;
    uint64_t reserved; /* always zero */
};

/* One allocation. The table has the allocations in the order in which they are made. */
struct bfc_plan_event {
    /* bytes from the start of the event's arena; a multiple of the header's `align` */
    uint64_t offset;
    uint64_t size; /* size of the block in bytes; a multiple of the header's `align` */
    /* The tick at which the block is allocated. A tick is a time plus 2^63 - 1, so that negative
     * times can be stored too. The block lives from `birth` to before `death`. */
    uint64_t birth;
    /* The tick at which the block is freed. If the next repetition frees it, this tick lies beyond
     * the end of the repetition that allocates it. */
    uint64_t death;
    uint32_t row; /* Row of the file that the plan was made from, counted from 0. */
    /* number of the program's thread that allocates, as in the trace; 0: unknown */
    uint32_t thread;
    uint32_t arena;
    uint8_t class_of; /* a value of enum bfc_plan_class */
    uint8_t reserved[3];
};

/* An anchor is an event that differs from all other events of the plan in (device, size, thread). A
 * job whose allocations have deviated from the plan, so that it no longer knows which event comes
 * next, continues at the next anchor that it meets. The table is sorted by the field `token`. */
struct bfc_plan_anchor {
    uint64_t token; /* hash of the event's device, size and thread (bfc_plan_token) */
    uint32_t event;
    uint32_t reserved; /* always zero */
};

static_assert(sizeof(struct bfc_plan_header) == 144, "the plan's header has a fixed size");
static_assert(sizeof(struct bfc_plan_arena) == 32, "the plan's arena has a fixed size");
static_assert(sizeof(struct bfc_plan_event) == 48, "the plan's event has a fixed size");
static_assert(sizeof(struct bfc_plan_anchor) == 16, "the plan's anchor has a fixed size");

/* Returns the size to which the pool rounds a request of this many bytes, unless settings ask for
 * other sizes. */
static inline uint64_t bfc_plan_round(uint64_t bytes) {
    uint64_t small = (bytes + BFC_PLAN_SMALL - 1) & ~(BFC_PLAN_SMALL - 1);
    return small < BFC_PLAN_LARGE ? small : (bytes + BFC_PLAN_LARGE - 1) & ~(BFC_PLAN_LARGE - 1);
}

/* Returns the checksum of a plan file: a hash of its 8-byte words, in which the header's own field
 * `checksum` counts as zero. */
static inline uint64_t bfc_plan_checksum(const void *bytes, uint64_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t hash = size;
    for (uint64_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, size - i < 8 ? size - i : 8);
        if (i == offsetof(struct bfc_plan_header, checksum))
            word = 0;
        hash = bfc_mix_join(hash, word);
    }
    return hash;
}

/* Returns the value of the header's program_hash, computed from the two hashes in the header of a
 * trace (layout/trace.h). */
static inline uint64_t bfc_plan_program(uint64_t executable_hash, uint64_t argument_hash) {
    return executable_hash ? bfc_mix_join(executable_hash, argument_hash) : 0;
}

/* Returns a hash of an allocation's device, size and thread, by which a job finds out whether the
 * allocation is an anchor. The size is rounded up to the plan's `align`. */
static inline uint64_t bfc_plan_token(uint32_t device, uint64_t size, uint32_t thread) {
    return bfc_mix(size * BFC_MIX_STEP ^ ((uint64_t)device << 32 | thread));
}

/* Returns the anchor whose field `token` has this value, out of `count` anchors that are sorted by
 * it; NULL: there is none. */
static inline const struct bfc_plan_anchor *
bfc_plan_find_anchor(const struct bfc_plan_anchor *anchors, uint32_t count, uint64_t token) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (anchors[middle].token < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && anchors[low].token == token ? &anchors[low] : NULL;
}

#endif

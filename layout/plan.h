/*
 * The plan file: bfcplan writes it, and a job that follows the plan reads it (BFC_PLAN).
 *
 * The file consists of a header, the arenas, the events in order of allocation, and the anchors;
 * each table starts at a multiple of 64 bytes. Numbers are in the byte order of the machine that
 * wrote the file: a reader with the other byte order sees byte_order swapped, and refuses the file.
 * Any change of this layout raises BFC_PLAN_VERSION.
 *
 * A plan is a hint: a job serves a planned address only if that is free, so safety does not depend
 * on anything in the file. The checksum serves to report damage, because a damaged plan would be
 * replayed badly.
 *
 * Replay passes through events[0, prefix) once, then through events[prefix, prefix + period) again
 * and again; without a period the plan holds the whole run. Offsets are from the start of the
 * event's arena.
 *
 * A plan of a recorded run (BFC_PLAN_FROM_TRACE) has two arenas for each device: one of small
 * blocks, and one of those that the pool rounds to BFC_PLAN_LARGE. Sizes are as bfc_plan_round
 * makes them, and offsets in the second arena are multiples of BFC_PLAN_LARGE. A job lays a
 * device's arenas one after the other, each from the next such multiple on.
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
/* In bytes: the pool rounds sizes below BFC_PLAN_LARGE to multiples of BFC_PLAN_SMALL, and others
 * to multiples of BFC_PLAN_LARGE. */
#define BFC_PLAN_SMALL ((uint64_t)1 << 9)
#define BFC_PLAN_LARGE ((uint64_t)1 << 16)

enum bfc_plan_class {
    BFC_PLAN_LIFELONG = 0, /* the block lives to the end of the run */
    BFC_PLAN_CROSSING = 1, /* the block lives beyond the end of the prefix or of a period */
    BFC_PLAN_PERIOD = 2,   /* the block is freed in the prefix or the period that allocated it */
    /* the allocation has no offset: it is served as if there were no plan */
    BFC_PLAN_UNPLANNED = 3,
    BFC_PLAN_CLASSES
};

enum bfc_plan_flags {
    BFC_PLAN_FROM_TRACE = 1, /* the plan is of a recorded run, so it can be replayed; without the
                                flag, it is of a list of lifetimes */
    BFC_PLAN_JITTER = 2, /* sizes vary between repetitions, and each event has its largest size */
};

struct bfc_plan_header {
    char magic[8];         /* BFC_PLAN_MAGIC and a zero byte */
    uint32_t version;      /* BFC_PLAN_VERSION */
    uint32_t byte_order;   /* BFC_PLAN_BYTE_ORDER as its writer stores it */
    uint64_t checksum;     /* bfc_plan_checksum */
    uint64_t file_bytes;   /* size of the whole file */
    uint64_t source_hash;  /* hash of the lifetimes and constraints that the plan was made from */
    uint64_t program_hash; /* hash of the recorded executable and its arguments; 0: unknown */
    uint64_t bound;        /* bytes that every plan needs at least, for all arenas together */
    uint64_t peak;         /* bytes that this plan needs */
    uint64_t align;        /* bytes: all offsets and sizes are multiples of this */
    uint64_t gap;          /* ticks between streams that share memory */
    uint64_t arenas_at;    /* bytes from the start of the file */
    uint64_t events_at;
    uint64_t anchors_at;
    uint32_t arenas; /* counts of arenas, events and anchors */
    uint32_t events;
    uint32_t anchors;
    uint32_t prefix;       /* events before the first period */
    uint32_t period;       /* events of one period; 0: none */
    uint32_t flags;        /* enum bfc_plan_flags */
    uint64_t period_birth; /* ticks: when the first period begins */
    uint64_t period_ticks; /* ticks: how long a period is; 0: there is none */
};

/* A range of memory with a plan of its own: one space or device, or a part of one. */
struct bfc_plan_arena {
    uint64_t bound; /* bytes */
    uint64_t peak;  /* bytes to reserve for the arena */
    uint32_t device;
    uint32_t events;
    uint64_t reserved; /* zero */
};

/* One allocation; the table has them in order. */
struct bfc_plan_event {
    uint64_t offset; /* bytes from the start of the event's arena; a multiple of align */
    uint64_t size;   /* bytes, rounded up to align */
    uint64_t birth;  /* ticks: the time plus 2^63 - 1; half-open lifetime */
    uint64_t death; /* ticks; in the next repetition if the block lives beyond the end of its own */
    uint32_t row;   /* row of the file that the plan was made from, counted from 0 */
    uint32_t thread; /* thread of the program, as recorded; 0: unknown */
    uint32_t arena;
    uint8_t class_of; /* enum bfc_plan_class */
    uint8_t reserved[3];
};

/* An event that differs from all others of the plan in (device, size, thread): a replay that has
 * lost its place resumes at the next anchor. The table is sorted by token. */
struct bfc_plan_anchor {
    uint64_t token; /* bfc_plan_token of the event */
    uint32_t event;
    uint32_t reserved; /* zero */
};

static_assert(sizeof(struct bfc_plan_header) == 144, "the plan's header has a fixed size");
static_assert(sizeof(struct bfc_plan_arena) == 32, "the plan's arena has a fixed size");
static_assert(sizeof(struct bfc_plan_event) == 48, "the plan's event has a fixed size");
static_assert(sizeof(struct bfc_plan_anchor) == 16, "the plan's anchor has a fixed size");

/* Returns the size of the block that the pool hands out for this many bytes by its standard
 * rules. */
static inline uint64_t bfc_plan_round(uint64_t bytes) {
    uint64_t small = (bytes + BFC_PLAN_SMALL - 1) & ~(BFC_PLAN_SMALL - 1);
    return small < BFC_PLAN_LARGE ? small : (bytes + BFC_PLAN_LARGE - 1) & ~(BFC_PLAN_LARGE - 1);
}

/* Returns the checksum of a plan: of its words of 8 bytes, with the header's `checksum` taken as
 * zero. */
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

/* Returns program_hash, from what the header of a trace says of its program (layout/trace.h). */
static inline uint64_t bfc_plan_program(uint64_t executable_hash, uint64_t argument_hash) {
    return executable_hash ? bfc_mix_join(executable_hash, argument_hash) : 0;
}

/* Returns a token that identifies an allocation by what a replay knows when the allocation is
 * requested; the size is rounded up to align. */
static inline uint64_t bfc_plan_token(uint32_t device, uint64_t size, uint32_t thread) {
    return bfc_mix(size * BFC_MIX_STEP ^ ((uint64_t)device << 32 | thread));
}

/* Returns the anchor with this token, out of `count` sorted ones; NULL: there is none. */
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

/*
 * The plan file: what bfcplan writes, and a job that follows it reads (BFC_PLAN).
 *
 * A header, the arenas, the events in order of allocation, the anchors; each table starts at a
 * multiple of 64 bytes. Numbers are in the byte order of the machine that wrote the file: a reader
 * with the other one sees byte_order swapped and refuses it. Any change of this layout raises
 * BFC_PLAN_VERSION.
 *
 * A plan is a hint: a job serves a planned address only if it is free, so nothing here need be
 * trusted for safety; the checksum is there so that damage is reported rather than replayed badly.
 *
 * Replay goes through events[0, prefix) once, then through events[prefix, prefix + period) again
 * and again; without a period the plan holds the whole run. Offsets are from the start of the
 * event's arena.
 *
 * Of a recorded run (BFC_PLAN_FROM_TRACE) each device has two arenas, one of small blocks and one
 * of those that the pool rounds to BFC_PLAN_LARGE; sizes are as bfc_plan_round makes them, and
 * offsets in the second arena are multiples of BFC_PLAN_LARGE. A job lays a device's arenas one
 * after the other, each from the next such multiple on.
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
#define BFC_PLAN_SMALL ((uint64_t)1 << 9)  /* bytes: what the pool rounds sizes to... */
#define BFC_PLAN_LARGE ((uint64_t)1 << 16) /* ...and those from this on */

enum bfc_plan_class {
    BFC_PLAN_LIFELONG = 0,  /* lives to the end of the run */
    BFC_PLAN_CROSSING = 1,  /* lives beyond the end of the prefix or of a period */
    BFC_PLAN_PERIOD = 2,    /* is freed in the prefix or the period that allocated it */
    BFC_PLAN_UNPLANNED = 3, /* has no offset: serve it as if there were no plan */
    BFC_PLAN_CLASSES
};

enum bfc_plan_flags {
    BFC_PLAN_FROM_TRACE =
        1,               /* of a recorded run: it can be replayed; else of a list of lifetimes */
    BFC_PLAN_JITTER = 2, /* sizes vary between repetitions: an event has its largest one */
};

struct bfc_plan_header {
    char magic[8];         /* BFC_PLAN_MAGIC and a zero byte */
    uint32_t version;      /* BFC_PLAN_VERSION */
    uint32_t byte_order;   /* BFC_PLAN_BYTE_ORDER as its writer stores it */
    uint64_t checksum;     /* bfc_plan_checksum */
    uint64_t file_bytes;   /* size of the whole file */
    uint64_t source_hash;  /* of the lifetimes and constraints that it was made from */
    uint64_t program_hash; /* of the recorded executable and its arguments; 0: unknown */
    uint64_t bound;        /* bytes: no plan needs less, all arenas together */
    uint64_t peak;         /* bytes: what this one needs */
    uint64_t align;        /* bytes: offsets and sizes are multiples of it */
    uint64_t gap;          /* ticks between streams that share memory */
    uint64_t arenas_at;    /* bytes from the start of the file */
    uint64_t events_at;
    uint64_t anchors_at;
    uint32_t arenas; /* how many of each */
    uint32_t events;
    uint32_t anchors;
    uint32_t prefix;       /* events before the first period */
    uint32_t period;       /* events of one period; 0: none */
    uint32_t flags;        /* enum bfc_plan_flags */
    uint64_t period_birth; /* ticks: when the first period begins... */
    uint64_t period_ticks; /* ...and how long one is; 0: there is none */
};

/* One for each space or device. */
struct bfc_plan_arena {
    uint64_t bound; /* bytes */
    uint64_t peak;  /* bytes: how much to reserve for it */
    uint32_t device;
    uint32_t events;
    uint64_t reserved; /* zero */
};

/* One for each allocation, in order. */
struct bfc_plan_event {
    uint64_t offset; /* bytes from the start of its arena; multiple of align */
    uint64_t size;   /* bytes, rounded up to align */
    uint64_t birth;  /* ticks: the time plus 2^63 - 1; half-open lifetime */
    uint64_t death;  /* in the next repetition where it lives beyond the end of its own */
    uint32_t row;    /* of the file that it was made from, from 0 */
    uint32_t thread; /* of the program, as recorded; 0: unknown */
    uint32_t arena;
    uint8_t class_of; /* enum bfc_plan_class */
    uint8_t reserved[3];
};

/*
 * An event that differs from all others of the plan in (device, size, thread): a replay that has
 * lost its place resumes at the next anchor. Sorted by token.
 */
struct bfc_plan_anchor {
    uint64_t token; /* bfc_plan_token of the event */
    uint32_t event;
    uint32_t reserved; /* zero */
};

static_assert(sizeof(struct bfc_plan_header) == 144, "the plan's header has a fixed size");
static_assert(sizeof(struct bfc_plan_arena) == 32, "the plan's arena has a fixed size");
static_assert(sizeof(struct bfc_plan_event) == 48, "the plan's event has a fixed size");
static_assert(sizeof(struct bfc_plan_anchor) == 16, "the plan's anchor has a fixed size");

/* The size of the block that the pool hands out for this many bytes, by its standard rules. */
static inline uint64_t bfc_plan_round(uint64_t bytes) {
    uint64_t small = (bytes + BFC_PLAN_SMALL - 1) & ~(BFC_PLAN_SMALL - 1);
    return small < BFC_PLAN_LARGE ? small : (bytes + BFC_PLAN_LARGE - 1) & ~(BFC_PLAN_LARGE - 1);
}

/* Over the file's words of 8 bytes, with the header's field for it taken as zero. */
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

/* program_hash, of what a trace's header has of its program (layout/trace.h). */
static inline uint64_t bfc_plan_program(uint64_t executable_hash, uint64_t argument_hash) {
    return executable_hash ? bfc_mix_join(executable_hash, argument_hash) : 0;
}

/* Identifies an allocation by what a replay knows when it is requested; the size is rounded up to
 * align. */
static inline uint64_t bfc_plan_token(uint32_t device, uint64_t size, uint32_t thread) {
    return bfc_mix(size * BFC_MIX_STEP ^ ((uint64_t)device << 32 | thread));
}

/* Of `count`, the one with this token; NULL: there is none. */
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

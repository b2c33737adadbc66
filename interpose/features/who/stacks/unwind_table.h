/*
 * The unwind tables of loaded objects: how the caller's registers are found from an address in a
 * function.
 *
 * Reads .eh_frame by its index, PT_GNU_EH_FRAME (Linux Standard Base 5.0, core, 10.6; call frame
 * instructions: DWARF 5, 6.4). Only what compilers make for the stack pointer, the frame pointer
 * and the return address is understood; for all else the answer is that there is no rule. Answers
 * are remembered. x86-64 alone: elsewhere there never is one. Thread-safe; takes no lock, and
 * allocates nothing.
 */
#ifndef BFC_INTERPOSE_UNWIND_TABLE_H
#define BFC_INTERPOSE_UNWIND_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/host/readable.h"

enum bfc_frame_base {
    BFC_BASE_NONE,     /* no rule: the table has none, or one that is not understood */
    BFC_BASE_STACK,    /* the frame begins at the stack pointer + offset */
    BFC_BASE_POINTER,  /* at the frame pointer + offset */
    BFC_BASE_INDIRECT, /* at the address that stands at the frame pointer + offset */
    BFC_BASE_SIGNAL,   /* the kernel's frame of a signal handler */
    BFC_BASE_OUTERMOST /* nobody called this */
};

enum bfc_saved_pointer {
    BFC_POINTER_KEPT,  /* the caller's frame pointer is still in its register */
    BFC_POINTER_SAVED, /* it was saved at the frame's begin + offset */
    BFC_POINTER_THERE, /* at the frame pointer + offset */
};

/*
 * A rule in 29 bits, so that a slot of the table of known rules is read and written whole. From the
 * lowest bit: the base (3), what became of the frame pointer (2), the base's offset from the stack
 * or frame pointer (16), and the offset of the saved frame pointer (8), both in words and with a
 * sign. The return address is the word below the frame's begin.
 */
typedef uint32_t bfc_frame_rule;

enum { BFC_RULE_BITS = 29, BFC_RULE_BASE_BITS = 16, BFC_RULE_POINTER_BITS = 8 };

static inline enum bfc_frame_base bfc_rule_base(bfc_frame_rule rule) {
    return (enum bfc_frame_base)(rule & 7);
}

static inline enum bfc_saved_pointer bfc_rule_pointer(bfc_frame_rule rule) {
    return (enum bfc_saved_pointer)(rule >> 3 & 3);
}

/* In bytes. */
static inline uint64_t bfc_rule_base_offset(bfc_frame_rule rule) {
    return (uint64_t)((int64_t)(int16_t)(rule >> 5) * 8);
}

static inline uint64_t bfc_rule_pointer_offset(bfc_frame_rule rule) {
    return (uint64_t)((int64_t)(int8_t)(rule >> 21) * 8);
}

/*
 * The table of known rules: of each slot the last two. One of them is a rule, and above it the 35
 * bits of the scrambled address that the slot's number does not tell; 0: nothing.
 */
enum { BFC_RULE_SLOT_BITS = 12, BFC_RULE_TAG_BITS = 64 - BFC_RULE_BITS };
extern uint64_t bfc_known_rules[1 << BFC_RULE_SLOT_BITS][2];

/* One to one for addresses of 47 bits. */
static inline uint64_t bfc_rule_key(uint64_t address) {
    return address * UINT64_C(0x9e3779b97f4a7c15) &
           ((UINT64_C(1) << (BFC_RULE_SLOT_BITS + BFC_RULE_TAG_BITS)) - 1);
}

bfc_frame_rule bfc_frame_rule_look_up(struct bfc_readable *readable, uint64_t address);

/* After an object was unloaded: another may come to lie where it was. */
void bfc_frame_rules_forget(void);

/* Whether a word of the slot has the rule of that key. */
static inline bool bfc_rule_is_of(uint64_t word, uint64_t key) {
    return (word ^ key << BFC_RULE_BITS) < UINT64_C(1) << BFC_RULE_BITS && word;
}

/* The rule at an address in the code: that of a call, not of its return. */
static inline bfc_frame_rule bfc_frame_rule_at(struct bfc_readable *readable, uint64_t address) {
    uint64_t key = bfc_rule_key(address);
    const uint64_t *slot = bfc_known_rules[key >> BFC_RULE_TAG_BITS];
    for (int i = 0; i < 2; i++) {
        uint64_t word = bfc_load_relaxed(&slot[i]);
        if (LIKELY(bfc_rule_is_of(word, key)))
            return (bfc_frame_rule)(word & ((UINT64_C(1) << BFC_RULE_BITS) - 1));
    }
    return bfc_frame_rule_look_up(readable, address);
}

#endif

/*
 * The unwind tables of loaded objects: for each address in a function, a rule to find the caller's
 * registers.
 *
 * Reads .eh_frame through its index, PT_GNU_EH_FRAME (Linux Standard Base 5.0, core, 10.6; call
 * frame instructions: DWARF 5, 6.4). Only forms that compilers generate for the stack pointer, the
 * frame pointer and the return address are supported; for other forms, and on processors other than
 * x86-64, there is no rule. Rules that were found are kept in a table. Thread-safe; takes no lock,
 * and allocates nothing.
 */
#ifndef BFC_INTERPOSE_UNWIND_TABLE_H
#define BFC_INTERPOSE_UNWIND_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/features/who/stacks/readable.h"

enum bfc_frame_base {
    BFC_BASE_NONE,     /* there is no rule, or its form is not supported */
    BFC_BASE_STACK,    /* the frame's base is the stack pointer + offset */
    BFC_BASE_POINTER,  /* the frame's base is the frame pointer + offset */
    BFC_BASE_INDIRECT, /* the frame's base is stored at the frame pointer + offset */
    BFC_BASE_SIGNAL,   /* the frame that the kernel made for a signal handler */
    BFC_BASE_OUTERMOST /* the function has no caller */
};

enum bfc_saved_pointer {
    BFC_POINTER_KEPT,  /* the caller's frame pointer is still in the register */
    BFC_POINTER_SAVED, /* the caller's frame pointer is stored at the frame's base + offset */
    BFC_POINTER_THERE, /* the caller's frame pointer is stored at the frame pointer + offset */
};

/*
 * A rule takes 29 bits, so that a word of 64 bits can hold both the rule and 35 bits that identify
 * the address, and be read and written at once. From the lowest bit: enum bfc_frame_base (3 bits),
 * enum bfc_saved_pointer (2), the base's offset (16), the saved frame pointer's offset (8). Offsets
 * are signed, in words of 8 bytes. The return address is always in the word below the frame's base.
 */
typedef uint32_t bfc_frame_rule;

enum { BFC_RULE_BITS = 29, BFC_RULE_BASE_BITS = 16, BFC_RULE_POINTER_BITS = 8 };

static inline enum bfc_frame_base bfc_rule_base(bfc_frame_rule rule) {
    return (enum bfc_frame_base)(rule & 7);
}

static inline enum bfc_saved_pointer bfc_rule_pointer(bfc_frame_rule rule) {
    return (enum bfc_saved_pointer)(rule >> 3 & 3);
}

/* Returns the offset of the frame's base in bytes. */
static inline uint64_t bfc_rule_base_offset(bfc_frame_rule rule) {
    return (uint64_t)((int64_t)(int16_t)(rule >> 5) * 8);
}

static inline uint64_t bfc_rule_pointer_offset(bfc_frame_rule rule) {
    return (uint64_t)((int64_t)(int8_t)(rule >> 21) * 8);
}

/* The table of the unwind rules found so far, a hash table by instruction address. Each slot has
 * two words, for the last two rules that were found for addresses of this slot; 0: empty. The low
 * bits of a word hold the rule. The 35 bits above hold the part of the hashed address that is not
 * the slot's number, by which the address is recognized. */
enum { BFC_RULE_SLOT_BITS = 12, BFC_RULE_TAG_BITS = 64 - BFC_RULE_BITS };
extern uint64_t bfc_known_rules[1 << BFC_RULE_SLOT_BITS][2];

/* Hashes the address of an instruction for the table of rules. Different addresses of 47 bits get
 * different keys. */
static inline uint64_t bfc_rule_key(uint64_t address) {
    return address * UINT64_C(0x9e3779b97f4a7c15) &
           ((UINT64_C(1) << (BFC_RULE_SLOT_BITS + BFC_RULE_TAG_BITS)) - 1);
}

/* Finds the rule for an address in the unwind tables of the object that contains it, and stores it
 * in the table of known rules. */
bfc_frame_rule bfc_frame_rule_look_up(struct bfc_readable *readable, uint64_t address);

/* Empties the table of known rules. To be called after a library was unloaded, since another may be
 * loaded at its addresses. */
void bfc_frame_rules_forget(void);

/* Whether this word of the table of known rules holds the rule for this key. */
static inline bool bfc_rule_is_of(uint64_t word, uint64_t key) {
    return (word ^ key << BFC_RULE_BITS) < UINT64_C(1) << BFC_RULE_BITS && word;
}

/* Returns the unwind rule for the instruction at `address`. For a function that has called another,
 * the address must be that of the call instruction, since the return address may belong to the next
 * function. */
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

/*
 * The unwind tables of loaded objects: how the caller's registers are found from an address in a
 * function.
 *
 * Reads .eh_frame by its index, PT_GNU_EH_FRAME (Linux Standard Base 5.0, core, 10.6; call frame
 * instructions: DWARF 5, 6.4). Only what compilers make for the stack pointer, the frame pointer
 * and the return address is understood; for all else the answer is that there is no rule. Answers
 * are remembered. x86-64 alone: elsewhere there never is one. Thread-safe; takes the loader's lock
 * for its list of objects at an address that was not asked for before; allocates nothing.
 */
#ifndef BFC_INTERPOSE_UNWIND_TABLE_H
#define BFC_INTERPOSE_UNWIND_TABLE_H

#include <stdbool.h>
#include <stdint.h>

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

/* Offsets in bytes. The return address is the word below the frame's begin. */
struct bfc_frame_rule {
    uint8_t base;        /* enum bfc_frame_base */
    uint8_t pointer;     /* enum bfc_saved_pointer */
    int32_t base_offset; /* from the stack or frame pointer */
    int32_t pointer_offset;
};

/* The rule at an address in the code: that of a call, not of its return. */
struct bfc_frame_rule bfc_frame_rule_at(uint64_t address);

#endif

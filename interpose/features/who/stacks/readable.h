/*
 * Words of the calling thread's stack, read so that no address that is wrong, or was never mapped,
 * can end the process.
 *
 * A thread's own stack is known after its first walk. On any other one (an alternate signal stack,
 * a coroutine's) the kernel is asked about each page before it is read. Nothing here allocates.
 */
#ifndef BFC_INTERPOSE_READABLE_H
#define BFC_INTERPOSE_READABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Addresses that may be read, for the length of one walk. */
struct bfc_readable {
    uint64_t low, high;
};

/* Begins with what is known about the stack that `sp` lies in, which the thread is on. */
void bfc_readable_begin(struct bfc_readable *readable, uint64_t sp);

/* Goes on at `sp`, where a signal is said to have come. False: nothing can be read there. */
bool bfc_readable_go_on(struct bfc_readable *readable, uint64_t sp);

/* The kernel's word on the page of an address above; extends the range. The thread's own stack has
 * nothing above it. */
bool bfc_readable_ask(struct bfc_readable *readable, uint64_t address);

/* Whether the address lies in the thread's own stack, as far as that is known. */
bool bfc_readable_is_own(uint64_t address);

/* Reads the aligned word at `address`. False: it cannot be read. */
static inline bool bfc_readable_word(struct bfc_readable *readable, uint64_t address,
                                     uint64_t *word) {
    if (address % sizeof *word != 0)
        return false;
    if ((address < readable->low || address >= readable->high) &&
        !bfc_readable_ask(readable, address))
        return false;
    *word = *(const uint64_t *)address;
    return true;
}

#endif

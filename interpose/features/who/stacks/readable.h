/*
 * Reads memory that may not be mapped, may be unmapped at any moment, or may contain anything. The
 * kernel copies it (process_vm_readv of the process's own memory), so that no address can end the
 * process.
 *
 * Only copies are examined, since memory that was readable once may not be so later. Where a
 * sandbox refuses the call of the kernel, or may kill the process for it, nothing is readable.
 * Nothing here allocates.
 */
#ifndef BFC_INTERPOSE_READABLE_H
#define BFC_INTERPOSE_READABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

enum { BFC_READABLE_BYTES = 512 };

/* A buffer with the memory that was copied last, which lies in one page: `size` bytes from the
 * address `from`. It serves one thread for one walk of a stack. */
struct bfc_readable {
    uint64_t from, size;
    /* the kernel's number of the calling thread; 0: nothing can be read; below 0: the number was
     * not fetched yet */
    int thread;
    unsigned char bytes[BFC_READABLE_BYTES];
};

/* Stores whether the process begins in a sandbox (seccomp), so it is called once and early. A
 * sandbox that is there from the beginning, such as a container's, at most refuses the system call
 * that reads memory. A sandbox that the process enters later may kill it for that call. */
void bfc_readable_begin_process(void);

static inline void bfc_readable_begin(struct bfc_readable *readable) {
    readable->thread = -1;
    readable->from = readable->size = 0;
}

/* Copies memory around `address` into the buffer, nothing beyond the address's page. False: it
 * cannot be read. */
bool bfc_readable_fetch(struct bfc_readable *readable, uint64_t address);

/* Copies `size` bytes from `address`. False: they cannot be read. */
bool bfc_readable_copy(struct bfc_readable *readable, uint64_t address, void *to, size_t size);

/* Reads the aligned word at `address`. False: it cannot be read. */
static inline bool bfc_readable_word(struct bfc_readable *readable, uint64_t address,
                                     uint64_t *word) {
    if (address % sizeof *word != 0 || (UNLIKELY(address - readable->from >= readable->size) &&
                                        !bfc_readable_fetch(readable, address)))
        return false;
    memcpy(word, readable->bytes + (address - readable->from), sizeof *word);
    return true;
}

#endif

/*
 * Notes on blocks: what is to be known of a live block beyond what its pool knows, kept by the
 * block's id, which is never used again. Few programs make any.
 *
 * A hash table under a lock, which is held across no call out of here. A process without notes pays
 * one load a free. Thread-safe.
 */
#ifndef BFC_INTERPOSE_NOTES_H
#define BFC_INTERPOSE_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/token.h"

struct bfc_note {
    uint64_t id;       /* of the block */
    const void *owner; /* its domain */
    bool sync_memops;  /* the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
    bool exported;     /* it has a token */
    struct bfc_token token;
};

extern size_t bfc_note_count;

/* Whether there are notes at all. */
static inline bool bfc_notes_exist(void) {
    return __atomic_load_n(&bfc_note_count, __ATOMIC_ACQUIRE) != 0;
}

/* The note on a block; false: there is none. */
bool bfc_note_find(uint64_t id, struct bfc_note *note);

/* Notes what the program set. False: the host has no memory. */
bool bfc_note_sync_memops(uint64_t id, const void *owner, bool on);

/* Notes a token, unless the block has one: then that one comes back in `token`. False as above. */
bool bfc_note_token(uint64_t id, const void *owner, struct bfc_token *token);

/* Takes the note on a block that was freed; false: there was none. */
bool bfc_note_take(uint64_t id, struct bfc_note *note);

/* Takes any one note on a block of this domain, which has ended; false: there is none left. */
bool bfc_note_take_of(const void *owner, struct bfc_note *note);

#endif

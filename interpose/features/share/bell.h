/*
 * The bell at the head of a process's table (interpose/features/share/token_table.h): a word by
 * which another process of the user wakes a thread of that process.
 *
 * Waiting needs no open descriptor: only a mapping of the table's head, which no code of ours reads
 * or writes, so that a file which somebody cuts short costs an error and no signal. The word itself
 * is read and written as a file's.
 */
#ifndef BFC_INTERPOSE_BELL_H
#define BFC_INTERPOSE_BELL_H

#include "interpose/features/share/token.h"

/* Where the calling process waits for its own bell. */
struct bfc_bell {
    struct bfc_token table; /* as bfc_token_table_name fills it */
    void *head;             /* mapped as long as the process lives */
};

/* False, with errno: there is no table, or the host has no memory. */
bool bfc_bell_hang(struct bfc_bell *bell);

/* What the word is now, to be given to bfc_bell_await. False: the table is gone. */
bool bfc_bell_read(const struct bfc_bell *bell, uint32_t *word);

/* Waits until the word is another one; may return earlier. False: the table is damaged. */
bool bfc_bell_await(const struct bfc_bell *bell, uint32_t word);

/* Rings the bell of the process that made a token. False: there is no such table, or it is not this
 * user's alone. */
bool bfc_bell_ring(const struct bfc_token *token);

#endif

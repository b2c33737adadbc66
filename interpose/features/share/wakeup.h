/*
 * The wakeup at the head of a process's table (interpose/features/share/token_table.h): a word by
 * which another process of the user wakes a thread of that process.
 *
 * Waiting needs no open descriptor: only a mapping of the table's head, which no code of ours reads
 * or writes, so that a file which somebody cuts short costs an error and no signal. The word itself
 * is read and written as a file's.
 */
#ifndef BFC_INTERPOSE_WAKEUP_H
#define BFC_INTERPOSE_WAKEUP_H

#include "interpose/features/share/token.h"

/* Where the calling process waits for its own wakeup. */
struct bfc_wakeup {
    struct bfc_token table; /* as bfc_token_table_name fills it */
    void *head;             /* mapped as long as the process lives */
};

/* False, with errno: there is no table, or the host has no memory. */
bool bfc_wakeup_open(struct bfc_wakeup *wakeup);

/* What the word is now, to be given to bfc_wakeup_await. False: the table is gone. */
bool bfc_wakeup_read(const struct bfc_wakeup *wakeup, uint32_t *word);

/* Waits until the word is another one; may return earlier. False: the table is damaged. */
bool bfc_wakeup_await(const struct bfc_wakeup *wakeup, uint32_t word);

/* Rings the wakeup of the process that made a token. False: there is no such table, or it is not
 * this user's alone. */
bool bfc_wakeup_signal(const struct bfc_token *token);

#endif

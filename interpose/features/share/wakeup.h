/*
 * The wakeup at the head of a process's table (interpose/features/share/token_table.h): a word by
 * which another process of the user wakes a thread of that process.
 *
 * Waiting needs no open descriptor, only a mapping of the table's head, which this library neither
 * reads nor writes, so that a file which another process truncates causes an error and no signal.
 * The word itself is read and written through the file.
 */
#ifndef BFC_INTERPOSE_WAKEUP_H
#define BFC_INTERPOSE_WAKEUP_H

#include "interpose/features/share/token.h"

/* The calling process's own wakeup. */
struct bfc_wakeup {
    struct bfc_token table; /* names the table, as bfc_token_table_name does */
    void *head;             /* mapped until the process ends */
};

/* Maps the head of this process's table. False, with errno: there is no table, or the host has no
 * memory. */
bool bfc_wakeup_open(struct bfc_wakeup *wakeup);

/* Reads the word for bfc_wakeup_await. False: the table is gone. */
bool bfc_wakeup_read(const struct bfc_wakeup *wakeup, uint32_t *word);

/* Waits until the word differs from `word`; may return earlier. False: the table is damaged. */
bool bfc_wakeup_await(const struct bfc_wakeup *wakeup, uint32_t word);

/* Wakes the process that made a token. False: that process has no table, or other users could have
 * written the table. */
bool bfc_wakeup_signal(const struct bfc_token *token);

#endif

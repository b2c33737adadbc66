/*
 * The table of exported blocks: for each process that exports, a file of rows
 * (interpose/features/share/token.h) after a head, which holds a futex by which importers wake the
 * process.
 *
 * The file lies next to the segment in /dev/shm, mode 0600, under a random name, from the first
 * export until the process ends; if the process was killed, a later process removes the file
 * (segment/left_over.h). Whole rows are read and written, never mapped, so that a file which
 * another process truncates causes an error and no signal. The file is opened anew for each export
 * and import: these are rare, and a program may close descriptors that it did not open.
 *
 * Thread-safe; the table's lock is held across file calls only.
 */
#ifndef BFC_INTERPOSE_TOKEN_TABLE_H
#define BFC_INTERPOSE_TOKEN_TABLE_H

#include <stddef.h>

#include "interpose/features/share/token.h"

/* Writes a row into this process's table. Fills in the row's check value, and all of the token but
 * its generation, which the caller has set. False, with errno: there is no room in /dev/shm or in
 * the table. */
bool bfc_token_table_publish(struct bfc_token *token, struct bfc_row *row);

/* Clears the row that a token of this process names: from now on no process can open the block by
 * the token. */
void bfc_token_table_retire(const struct bfc_token *token);

/* Whether this process made the token. */
bool bfc_token_table_is_own(const struct bfc_token *token);

/* Fills in those fields of a token that name this process's table. False: this process has exported
 * nothing. */
bool bfc_token_table_name(struct bfc_token *token);

/* Opens the table of the process that made a token; `flags` are those of open(2). Returns -1 on
 * failure: if errno is ENOENT, the table is missing (BFC_TABLE_MISSING), else it may not be trusted
 * (BFC_TABLE_UNSAFE). The caller disables cancellation. */
int bfc_token_table_open(const struct bfc_token *token, int flags);

/* Fills a buffer with bytes of the kernel's random generator. False: the kernel has none. */
bool bfc_fill_randomly(void *bytes, size_t size);

enum { BFC_TABLE_HEAD = 4096 }; /* bytes of a table's file before the first row */

enum bfc_table_answer {
    BFC_TABLE_FOUND,
    BFC_TABLE_DAMAGED, /* the token's check value is wrong: the token was made up or changed */
    BFC_TABLE_MISSING, /* the exporter has ended, is another user's, or has another /dev/shm */
    BFC_TABLE_UNSAFE,  /* other users could have written the file */
    BFC_TABLE_STALE,   /* the block was freed */
};

/* Reads the row that a token names, in the table of the process that made the token; `row` is set
 * only for BFC_TABLE_FOUND. */
enum bfc_table_answer bfc_token_table_read(const struct bfc_token *token, struct bfc_row *row);

/* What the calling process sleeps on until importers wake it: a futex in the head of its table.
 * Waiting needs no open descriptor, only a mapping of the head. This library reads and writes the
 * futex's word through the file, since an access to the mapping of a truncated file would raise a
 * signal. */
struct bfc_wakeup {
    struct bfc_token table; /* only the fields that name this process's table are set */
    void *head;             /* the head of the table, mapped until the process ends */
};

/* Maps the head of this process's table for waiting. False, with errno: there is no table, or the
 * host has no memory. */
bool bfc_wakeup_open(struct bfc_wakeup *wakeup);

/* Reads the futex's word, to be passed to bfc_wakeup_await. False: the table's file is gone. */
bool bfc_wakeup_read(const struct bfc_wakeup *wakeup, uint32_t *word);

/* Waits until the futex's word differs from `word`; may return earlier. False: the table's file is
 * damaged. */
bool bfc_wakeup_await(const struct bfc_wakeup *wakeup, uint32_t word);

/* Wakes the process that made a token. False: that process has no table, or other users could have
 * written the table. */
bool bfc_wakeup_signal(const struct bfc_token *token);

#endif

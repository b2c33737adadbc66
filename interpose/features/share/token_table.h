/*
 * The table of exported blocks: a file of rows (interpose/features/share/token.h) for each process
 * that exports, behind a head that is a wakeup (interpose/features/share/wakeup.h).
 *
 * It lies beside the segment in /dev/shm, mode 0600, under a random name, from the process's first
 * export to its end; files that killed processes left are swept by whoever comes next
 * (segment/left_over.h). It is read and written by whole rows, never mapped: a file that another
 * process cuts short costs a clean error. Exports and imports are rare, and no descriptor stays
 * open between them, since a program may close all that it does not know.
 *
 * Thread-safe; the lock is held for file calls alone.
 */
#ifndef BFC_INTERPOSE_TOKEN_TABLE_H
#define BFC_INTERPOSE_TOKEN_TABLE_H

#include "interpose/features/share/token.h"

/*
 * Writes a row and fills the token for it: all but its generation, which the caller has set; the
 * row but for its check. False, with errno: there is no room for it in /dev/shm or in the table.
 */
bool bfc_token_table_publish(struct bfc_token *token, struct bfc_row *row);

/* Wipes a row of this process's own: from now on no reader finds it. */
void bfc_token_table_retire(const struct bfc_token *token);

/* Whether the token is one of this process's own. */
bool bfc_token_table_is_own(const struct bfc_token *token);

/* Fills in of a token what names this process's table: all but slot, generation and keys. False:
 * this process has exported nothing. */
bool bfc_token_table_name(struct bfc_token *token);

/*
 * Opens the table of the process that made a token; `flags` as open(2)'s. -1, with errno: as
 * BFC_TABLE_MISSING (ENOENT) and BFC_TABLE_UNSAFE. The caller disables cancellation.
 */
int bfc_token_table_open(const struct bfc_token *token, int flags);

enum { BFC_TABLE_HEAD = 4096 }; /* bytes before the first row */

enum bfc_table_answer {
    BFC_TABLE_FOUND,
    BFC_TABLE_DAMAGED, /* not a token that anybody gave out */
    BFC_TABLE_MISSING, /* the exporter has ended, is another user's, or has another /dev/shm */
    BFC_TABLE_UNSAFE,  /* there is such a file, but others than this user could have written it */
    BFC_TABLE_STALE,   /* the block was freed since */
};

/* Reads the row of any process's token; it is set only when found. */
enum bfc_table_answer bfc_token_table_read(const struct bfc_token *token, struct bfc_row *row);

#endif

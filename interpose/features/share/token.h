/*
 * Tokens: what cuIpcGetMemHandle gives a program for a pooled block, in place of the driver's
 * handle, which would stand for the block's whole region.
 *
 * A token names a row of the exporting process's table (interpose/features/share/token_table.h),
 * which holds the driver's handle of the region and the block's place in it, and carries a random
 * key that no file holds. Token and row are both sealed with a keyed check value (SipHash-2-4): a
 * token that was truncated or made up, or whose block was freed since, matches no row, and neither
 * does a row that was tampered with or is being written at the moment. The driver of a process
 * without us does not accept it as a handle.
 *
 * Pure: nothing here allocates, locks or calls the system.
 */
#ifndef BFC_INTERPOSE_TOKEN_H
#define BFC_INTERPOSE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define BFC_HANDLE_SIZE 64 /* of a CUipcMemHandle, in bytes */

/* The token as it is passed between processes of one machine. */
struct bfc_token {
    uint8_t magic[8];
    uint64_t pid_namespace; /* of the exporter: inode number */
    uint64_t table;         /* random number in the name of its table */
    int32_t pid;            /* of the exporter, in its namespace */
    uint32_t slot;          /* of the row in the table */
    uint64_t generation;    /* the block's id: another one for each allocation */
    uint8_t key[16];
    uint64_t check; /* over all before the key, under the key */
};
_Static_assert(sizeof(struct bfc_token) == BFC_HANDLE_SIZE, "a token takes a handle's place");

/* A row of the table. Sizes and offsets in bytes. */
struct bfc_row {
    uint8_t handle[BFC_HANDLE_SIZE]; /* the driver's, of the region; with pages zeros */
    uint64_t region_size;            /* with pages: of all of them together */
    uint64_t offset;                 /* of the block in its region, or in its first page */
    uint64_t size;                   /* of the block, as the program asked for it */
    uint64_t pages;                  /* behind the block (page_server.h); 0: it lies in a region */
    uint64_t reserved[3];            /* zero */
    uint64_t check; /* over the token before its key, and all before this, under the token's key */
};
_Static_assert(sizeof(struct bfc_row) == 128, "rows do not straddle pages");

/* Rows that a table can have. */
#define BFC_MOST_ROWS (UINT32_C(1) << 20)

/* Whether 64 bytes claim to be a token. */
bool bfc_token_claimed(const void *handle);

/* Fills magic and check; the rest is filled. */
void bfc_token_seal(struct bfc_token *token);

/* Whether it is a token that was sealed and not changed since. */
bool bfc_token_intact(const struct bfc_token *token);

/* Fills a row's check, for a sealed token. */
void bfc_row_seal(const struct bfc_token *token, struct bfc_row *row);

/* Whether the row belongs to the token, is unchanged and plausible. */
bool bfc_row_matches(const struct bfc_token *token, const struct bfc_row *row);

#endif

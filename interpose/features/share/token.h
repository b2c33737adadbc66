/*
 * Tokens: what cuIpcGetMemHandle gives a program for a pooled block, in place of the driver's
 * handle, which would stand for the block's whole region.
 *
 * A token names a row of the exporting process's table (interpose/features/share/token_table.h),
 * which holds the driver's handle of the region and the block's offset. The token also has a random
 * key that is stored in no file. Token and row are sealed with a keyed check value (SipHash-2-4): a
 * token that was truncated or made up, or whose block was freed, matches no row, and a row that was
 * changed or is being written matches no token. In a process without this library the driver
 * rejects a token as an invalid handle.
 *
 * Nothing here allocates, locks or calls the system.
 */
#ifndef BFC_INTERPOSE_TOKEN_H
#define BFC_INTERPOSE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define BFC_HANDLE_SIZE 64 /* bytes of a CUipcMemHandle */

/* The layout of a token, which processes of one machine pass to each other. */
struct bfc_token {
    uint8_t magic[8];
    uint64_t pid_namespace; /* inode number of the exporter's pid namespace */
    uint64_t table;         /* random number in the name of the exporter's table file */
    int32_t pid;            /* process id of the exporter, in the exporter's namespace */
    uint32_t slot;          /* index of the block's row in the exporter's table */
    uint64_t generation;    /* the block's id, which differs for each allocation */
    uint8_t key[16];
    uint64_t check; /* SipHash of the fields before `key`, with `key` */
};
_Static_assert(sizeof(struct bfc_token) == BFC_HANDLE_SIZE, "a token takes a handle's place");

/* A row of the table of exported blocks, which describes one block. Sizes and offsets in bytes. */
struct bfc_row {
    uint8_t handle[BFC_HANDLE_SIZE]; /* the driver's IPC handle of the region; zeros for pages */
    uint64_t region_size;            /* bytes of the region, or of all pages that hold the block */
    uint64_t offset;                 /* the block's offset in its region, or in its first page */
    uint64_t size;                   /* the block's size, as the program asked for it */
    uint64_t pages;       /* how many pages hold the block; 0: the block lies in a region */
    uint64_t reserved[3]; /* always zero */
    uint64_t check;       /* SipHash of the token's fields before `key` and the row's fields before
                             `check`, with the token's key */
};
_Static_assert(sizeof(struct bfc_row) == 128, "rows do not straddle pages");

/* how many rows the table of a process can have */
#define BFC_MOST_ROWS (UINT32_C(1) << 20)

/* Whether BFC_HANDLE_SIZE bytes begin like a token, and so are no handle of the driver. */
bool bfc_token_claimed(const void *handle);

/* Seals a token: fills in its magic number and its check value. The caller sets all other fields
 * before. */
void bfc_token_seal(struct bfc_token *token);

/* Whether the token's check value is right: the token was sealed, and not changed since. */
bool bfc_token_intact(const struct bfc_token *token);

/* Seals a row for a sealed token: fills in the row's check value. */
void bfc_row_seal(const struct bfc_token *token, struct bfc_row *row);

/* Whether the row's check value shows that it belongs to the token and is unchanged, and its sizes
 * are plausible. */
bool bfc_row_matches(const struct bfc_token *token, const struct bfc_row *row);

#endif

/* Computes and verifies the check values of tokens and of the rows of exported blocks. */
#include "interpose/features/share/token.h"

#include <stddef.h>
#include <string.h>

#include "interpose/features/share/siphash.h"

/* The first word of a token. The last byte is the version of the token's layout. No text begins
 * with the first byte (in UTF-8 it continues a character), so no text is taken for a token. */
static const uint8_t magic[8] = {0xbf, 'C', 'I', 'P', 'C', 0xbf, 0x00, 0x01};

enum {
    TOKEN_SEALED = offsetof(struct bfc_token, key),
    ROW_SEALED = offsetof(struct bfc_row, check),
};

static uint64_t token_check(const struct bfc_token *token) {
    return bfc_siphash(token->key, token, TOKEN_SEALED);
}

static uint64_t row_check(const struct bfc_token *token, const struct bfc_row *row) {
    uint8_t sealed[TOKEN_SEALED + ROW_SEALED];
    memcpy(sealed, token, TOKEN_SEALED);
    memcpy(sealed + TOKEN_SEALED, row, ROW_SEALED);
    return bfc_siphash(token->key, sealed, sizeof sealed);
}

bool bfc_token_claimed(const void *handle) {
    return memcmp(handle, magic, sizeof magic) == 0;
}

void bfc_token_seal(struct bfc_token *token) {
    memcpy(token->magic, magic, sizeof magic);
    token->check = token_check(token);
}

bool bfc_token_intact(const struct bfc_token *token) {
    return bfc_token_claimed(token) && token->check == token_check(token) &&
           token->slot < BFC_MOST_ROWS && token->pid > 0;
}

void bfc_row_seal(const struct bfc_token *token, struct bfc_row *row) {
    row->check = row_check(token, row);
}

bool bfc_row_matches(const struct bfc_token *token, const struct bfc_row *row) {
    return row->check == row_check(token, row) && row->size > 0 && row->offset < row->region_size &&
           row->size <= row->region_size - row->offset;
}

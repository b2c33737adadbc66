/* Tokens and their rows, and the hash that seals them. */
#include <criterion/criterion.h>
#include <string.h>

#include "interpose/features/share/siphash.h"
#include "interpose/features/share/token.h"

/* The paper's own example (appendix A): key 00 to 0f, message 00 to 0e. */
Test(siphash, answers_as_the_paper) {
    uint8_t key[16], message[15];
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)i;
    memcpy(message, key, sizeof message);
    cr_assert_eq(bfc_siphash(key, message, sizeof message), UINT64_C(0xa129ca6149be45e5));
}

Test(siphash, tells_lengths_apart) {
    const uint8_t key[16] = {1}, zeros[24] = {0};
    for (size_t size = 1; size <= sizeof zeros; size++)
        cr_assert_neq(bfc_siphash(key, zeros, size), bfc_siphash(key, zeros, size - 1));
}

static struct bfc_token sealed_token(void) {
    struct bfc_token token = {.pid_namespace = 4026531836,
                              .table = 0x1234567890abcdef,
                              .pid = 4711,
                              .slot = 3,
                              .generation = 42,
                              .key = "sixteen bytes.."};
    bfc_token_seal(&token);
    return token;
}

static struct bfc_row sealed_row(const struct bfc_token *token, uint64_t offset, uint64_t size,
                                 uint64_t region_size) {
    struct bfc_row row = {
        .handle = "the driver's", .offset = offset, .size = size, .region_size = region_size};
    bfc_row_seal(token, &row);
    return row;
}

Test(token, is_known_by_its_magic) {
    struct bfc_token token = sealed_token();
    uint8_t zeros[BFC_HANDLE_SIZE] = {0};
    cr_assert(bfc_token_claimed(&token));
    cr_assert(bfc_token_intact(&token));
    cr_assert_not(bfc_token_claimed(zeros));
}

Test(token, any_changed_bit_breaks_it) {
    for (size_t bit = 0; bit < 8 * sizeof(struct bfc_token); bit++) {
        struct bfc_token token = sealed_token();
        ((uint8_t *)&token)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_assert_not(bfc_token_intact(&token), "bit %zu", bit);
    }
}

Test(token, a_slot_beyond_any_table_is_refused_though_sealed) {
    struct bfc_token token = sealed_token();
    token.slot = BFC_MOST_ROWS;
    bfc_token_seal(&token);
    cr_assert_not(bfc_token_intact(&token));
}

Test(row, any_changed_bit_breaks_it) {
    struct bfc_token token = sealed_token();
    for (size_t bit = 0; bit < 8 * sizeof(struct bfc_row); bit++) {
        struct bfc_row row = sealed_row(&token, 512, 1000, 2 << 20);
        cr_assert(bfc_row_matches(&token, &row));
        ((uint8_t *)&row)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_assert_not(bfc_row_matches(&token, &row), "bit %zu", bit);
    }
}

Test(row, belongs_to_one_token) {
    struct bfc_token token = sealed_token(), other = sealed_token();
    struct bfc_row row = sealed_row(&token, 512, 1000, 2 << 20);
    other.generation++;
    bfc_token_seal(&other);
    cr_assert_not(bfc_row_matches(&other, &row));
}

Test(row, an_impossible_place_is_refused_though_sealed) {
    struct bfc_token token = sealed_token();
    const struct bfc_row rows[] = {
        sealed_row(&token, 0, 0, 1 << 20),
        sealed_row(&token, 0, (1 << 20) + 1, 1 << 20),
        sealed_row(&token, 1 << 20, 1, 1 << 20),
        sealed_row(&token, 512, (1 << 20) - 511, 1 << 20),
        sealed_row(&token, UINT64_MAX - 511, 1024, 1 << 20),
        sealed_row(&token, 512, UINT64_MAX, 1 << 20),
        sealed_row(&token, 0, 1, 0),
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_assert_not(bfc_row_matches(&token, &rows[i]), "row %zu", i);
    struct bfc_row whole = sealed_row(&token, 0, 1 << 20, 1 << 20);
    cr_assert(bfc_row_matches(&token, &whole));
}

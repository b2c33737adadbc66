/* Sizes as people write them. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "base/bytes.h"

static uint64_t parsed(const char *text) {
    uint64_t bytes = 77;
    cr_assert(bfc_bytes_parse(text, UINT64_MAX, &bytes), "%s", text);
    return bytes;
}

static void is_refused(const char *text, uint64_t most) {
    uint64_t bytes = 77;
    cr_assert_not(bfc_bytes_parse(text, most, &bytes), "%s", text);
    cr_assert_eq(bytes, 77, "%s", text);
}

Test(bytes, units) {
    cr_assert_eq(parsed("0"), 0);
    cr_assert_eq(parsed("007"), 7);
    cr_assert_eq(parsed("3K"), 3072);
    cr_assert_eq(parsed("3k"), 3072);
    cr_assert_eq(parsed("5M"), UINT64_C(5) << 20);
    cr_assert_eq(parsed("5m"), UINT64_C(5) << 20);
    cr_assert_eq(parsed("6G"), UINT64_C(6) << 30);
    cr_assert_eq(parsed("6g"), UINT64_C(6) << 30);
    cr_assert_eq(parsed("7T"), UINT64_C(7) << 40);
    cr_assert_eq(parsed("7t"), UINT64_C(7) << 40);
}

Test(bytes, bounds) {
    cr_assert_eq(parsed("18446744073709551615"), UINT64_MAX);
    cr_assert_eq(parsed("16777215T"), UINT64_C(16777215) << 40);
    is_refused("18446744073709551616", UINT64_MAX);
    is_refused("99999999999999999999999", UINT64_MAX);
    is_refused("16777216T", UINT64_MAX);
    is_refused("4K", 4095);
    is_refused("4096", 4095);
}

Test(bytes, anything_else) {
    static const char *const refused[] = {"",    "K",   " 1",  "1 ",   "+1", "-1",  "1.5", "1.5G",
                                          "1KK", "1KB", "1Ki", "0x10", "1,", "1e3", "1P",  "none"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        is_refused(refused[i], UINT64_MAX);
}

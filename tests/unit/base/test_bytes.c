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

Test(bytes, units_as_other_tools_write_them) {
    static const char *const same[] = {"2G",    "2g",    "2GB",    "2gb",         "2GiB",
                                       "2Gi",   "2 G",   "2 GiB",  "2.0G",        "2.000 GB",
                                       "2048M", "2048m", "2048MB", "0.001953125T"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        cr_assert_eq(parsed(same[i]), UINT64_C(2) << 30, "%s", same[i]);
    cr_assert_eq(parsed("512 B"), 512);
    cr_assert_eq(parsed("512b"), 512);
}

/* Rounded down to whole bytes. */
Test(bytes, fractions) {
    cr_assert_eq(parsed("2.5G"), UINT64_C(5) << 29);
    cr_assert_eq(parsed("1.2K"), 1228);
    cr_assert_eq(parsed("0.1T"), UINT64_C(109951162777));
    cr_assert_eq(parsed("0.00000000000000000001T"), 0);
    cr_assert_eq(parsed("0.99999999999999999999999K"), 1023);
    is_refused("1.5K", 1535);
    cr_assert_eq(parsed("16777215.9T"), UINT64_C(18446742974197923840) + UINT64_C(989560464998));
    is_refused("16777216.5T", UINT64_MAX);
}

Test(bytes, anything_else) {
    static const char *const refused[] = {"",     "K",    " 1",   "1 ",     "+1",    "-1",  "1.5",
                                          "1.5B", "1KK",  "1Ki ", "0x10",   "1,",    "1e3", "1P",
                                          "none", "2.G",  ".5G",  "1.5.5G", "2,5G",  "1i",  "1iB",
                                          "1  G", "1\tG", "1GBB", "1BG",    "1Kb/s", "1 "};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        is_refused(refused[i], UINT64_MAX);
}

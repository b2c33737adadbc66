/* Figures, foreign text, tables and JSON as the tools write them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/text/json_writer.h"
#include "tools/text/print_text.h"

static char text[512];

#define EXPECT(expected, call) cr_expect_str_eq((call), (expected))

Test(text, bytes) {
    EXPECT("0 B", bfc_bytes_text(0, text, sizeof text));
    EXPECT("1023 B", bfc_bytes_text(1023, text, sizeof text));
    EXPECT("1.00 KiB", bfc_bytes_text(1024, text, sizeof text));
    EXPECT("1.50 KiB", bfc_bytes_text(1536, text, sizeof text));
    EXPECT("12.0 MiB", bfc_bytes_text(12u << 20, text, sizeof text));
    EXPECT("139 GiB", bfc_bytes_text(UINT64_C(139) << 30, text, sizeof text));
    EXPECT("1.00 GiB", bfc_bytes_text((UINT64_C(1) << 30) - 1, text, sizeof text));
    EXPECT("16.0 EiB", bfc_bytes_text(UINT64_MAX, text, sizeof text));
}

Test(text, counts) {
    EXPECT("0", text_count(0, text, sizeof text));
    EXPECT("999", text_count(999, text, sizeof text));
    EXPECT("1,000", text_count(1000, text, sizeof text));
    EXPECT("18,446,744,073,709,551,615", text_count(UINT64_MAX, text, sizeof text));
}

Test(text, shares) {
    EXPECT("-", bfc_share_text(-1, text, sizeof text));
    EXPECT("0.0 %", bfc_share_text(0, text, sizeof text));
    EXPECT("<0.1 %", bfc_share_text(0.0001, text, sizeof text));
    EXPECT("99.8 %", bfc_share_text(0.998, text, sizeof text));
    EXPECT(">99.9 %", bfc_share_text(0.99999, text, sizeof text));
    EXPECT("100.0 %", bfc_share_text(1, text, sizeof text));
}

Test(text, durations) {
    EXPECT("350 ns", text_duration(350, text, sizeof text));
    EXPECT("12.3 us", text_duration(12300, text, sizeof text));
    EXPECT("1.00 ms", text_duration(999900, text, sizeof text));
    EXPECT("4.56 s", text_duration(4560000000, text, sizeof text));
    EXPECT("2 min 10 s", text_duration(130000000000, text, sizeof text));
    EXPECT("3 h 4 min", text_duration(UINT64_C(11040000000000), text, sizeof text));
}

Test(text, foreign_text_cannot_move_the_cursor) {
    EXPECT("a?[31mb", text_printable("a\033[31mb", text, sizeof text));
    EXPECT("a?b", text_printable("a\nb", text, sizeof text));
    EXPECT("a?b", text_printable("a\302\233b", text, sizeof text)); /* C1: CSI */
    EXPECT("na\303\257ve", text_printable("na\303\257ve", text, sizeof text));
    EXPECT("??x", text_printable("\300\257x", text, sizeof text));
    char small[4];
    EXPECT("ab", text_printable("ab\303\257", small, sizeof small)); /* no half characters */
}

static char *written(void (*write)(FILE *)) {
    char *buffer = NULL;
    size_t size;
    FILE *stream = open_memstream(&buffer, &size);
    write(stream);
    fclose(stream);
    return buffer;
}

static void write_table(FILE *stream) {
    struct text_table table = {.columns = 3, .right = 1};
    text_table_add(&table, (const char *const[]){"N", "NAME", "COMMAND"});
    text_table_add(&table, (const char *const[]){"12", "\303\274ber", "a long command line"});
    text_table_print(&table, stream, 19);
    text_table_free(&table);
}

Test(text, tables_line_up) {
    char *buffer = written(write_table);
    EXPECT(" N  NAME  COMMAND\n12  \303\274ber  a long co\n", buffer);
    free(buffer);
}

static void write_json(FILE *stream) {
    struct json_writer json = json_writer_init(stream);
    json_object(&json, NULL);
    json_string(&json, "text", "a\"\\\n\033\377\303\274");
    json_unsigned(&json, "most", UINT64_MAX);
    json_signed(&json, "least", INT64_MIN);
    json_number(&json, "half", 0.5);
    json_number(&json, "nan", NAN);
    json_boolean(&json, "yes", true);
    json_array(&json, "empty");
    json_array_end(&json);
    json_array(&json, "list");
    json_null(&json, NULL);
    json_object(&json, NULL);
    json_object_end(&json);
    json_array_end(&json);
    json_object_end(&json);
}

Test(text, json) {
    char *buffer = written(write_json);
    EXPECT("{\n"
           "  \"text\": \"a\\\"\\\\\\n\\u001b\\ufffd\303\274\",\n"
           "  \"most\": 18446744073709551615,\n"
           "  \"least\": -9223372036854775808,\n"
           "  \"half\": 0.5,\n"
           "  \"nan\": null,\n"
           "  \"yes\": true,\n"
           "  \"empty\": [],\n"
           "  \"list\": [\n"
           "    null,\n"
           "    {}\n"
           "  ]\n"
           "}\n",
           buffer);
    free(buffer);
}

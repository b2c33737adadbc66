/* Numbers, names, sorting, CSV, traces and plan files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "planner/common/sort.h"
#include "tests/unit/plan/helpers.h"
#include "tools/plan/io/plan_file.h"
#include "tools/plan/trace/read_trace.h"

Test(number, limits) {
    uint64_t value;
    char text[PLAN_TICK_TEXT];
    cr_assert(plan_parse_u64("18446744073709551615", 20, UINT64_MAX, &value));
    cr_assert_eq(value, UINT64_MAX);
    cr_assert_not(plan_parse_u64("18446744073709551616", 20, UINT64_MAX, &value));
    cr_assert_not(plan_parse_u64("", 0, UINT64_MAX, &value));
    cr_assert(plan_parse_tick("9223372036854775808", 19, &value));
    cr_assert_eq(value, UINT64_MAX);
    cr_assert_str_eq(plan_tick_print(value, text), "9223372036854775808");
    cr_assert(plan_parse_tick("-9223372036854775807", 20, &value));
    cr_assert_eq(value, 0);
    cr_assert_str_eq(plan_tick_print(value, text), "-9223372036854775807");
    cr_assert_not(plan_parse_tick("-9223372036854775808", 20, &value));
    cr_assert_not(plan_parse_tick("-", 1, &value));
    cr_assert(plan_round_up(PLAN_MOST_BYTES - 1, 512, &value) && value == PLAN_MOST_BYTES);
    cr_assert_not(plan_round_up(PLAN_MOST_BYTES + 1, 1, &value));
}

Test(names, many) {
    struct names names = {0};
    char text[3000][8];
    bool fresh;
    for (uint32_t i = 0; i < 3000; i++) {
        const int length = snprintf(text[i], sizeof text[i], "n%u", i);
        cr_assert_eq(names_add(&names, (struct name){text[i], (size_t)length}, &fresh), i);
        cr_assert(fresh);
    }
    cr_assert_eq(names_add(&names, (struct name){"n77", 3}, &fresh), 77);
    cr_assert_not(fresh);
    cr_assert_eq(names_find(&names, (struct name){"n", 1}), NAMES_NONE);
    names_free(&names);
}

Test(sort, is_stable_and_right) {
    for (size_t n = 0; n < 400; n = n * 2 + 1) {
        struct keyed list[400];
        uint64_t random = n;
        for (uint32_t i = 0; i < n; i++)
            list[i] = (struct keyed){random_next(&random) % (n + 1) << 40, i};
        cr_assert(sort_keyed(list, n));
        for (size_t i = 1; i < n; i++)
            cr_assert(list[i - 1].key < list[i].key ||
                      (list[i - 1].key == list[i].key && list[i - 1].index < list[i].index));
    }
    cr_assert(sort_key_of(-2) < sort_key_of(-1) && sort_key_of(-1) < sort_key_of(0.5));
}

Test(csv, reads_all_columns) {
    struct lifetimes l;
    struct plan_error error;
    cr_assert(parse_text(&l,
                         "size,id,lower,upper,alias,group,space,offset,stream\r\n"
                         "7,a,0,4,b,,s,512,x\r\n\r\n 8 , \"b\" ,1,5,,g,t,,y\n9,c,2,3,,,s,,\n",
                         &error),
              "%s", error.text);
    cr_assert_eq(l.count, 3);
    cr_assert_eq(l.rows[0].size, 7);
    cr_assert_eq(l.rows[0].alias, 1);
    cr_assert_eq(l.rows[0].pin, 512);
    cr_assert_eq(l.rows[1].line, 4);
    cr_assert_eq(l.rows[1].group, 0);
    cr_assert_eq(l.rows[1].space, 1);
    cr_assert_eq(l.rows[2].space, 0);
    cr_assert_eq(l.rows[2].stream, ROW_NONE);
    cr_assert(l.has_alias && l.has_group && l.has_pin && l.has_stream);
    lifetimes_free(&l);
}

Test(csv, hash_changes_with_every_field) {
    const char *const texts[] = {
        "id,lower,upper,size\na,0,4,7\nb,0,4,7\n", "id,lower,upper,size\na,1,4,7\nb,0,4,7\n",
        "id,lower,upper,size\na,0,5,7\nb,0,4,7\n", "id,lower,upper,size\na,0,4,8\nb,0,4,7\n",
        "id,lower,upper,size,alias\na,0,4,7,\nb,0,4,7,a\n"};
    struct plan_error error;
    uint64_t hashes[5];
    for (int i = 0; i < 5; i++) {
        struct lifetimes l;
        cr_assert(parse_text(&l, texts[i], &error));
        hashes[i] = l.hash;
        lifetimes_free(&l);
        for (int j = 0; j < i; j++)
            cr_assert_neq(hashes[i], hashes[j]);
    }
}

static struct file_text written(const struct trace *trace, enum bfc_trace_codec codec) {
    struct file_text text = {calloc(1, 1 << 21), 0};
    FILE *stream = fmemopen(text.bytes, 1 << 21, "wb");
    cr_assert(trace_write(trace, stream, codec));
    fflush(stream);
    text.size = (size_t)ftell(stream);
    fclose(stream);
    return text;
}

Test(trace, comes_back_and_loses_only_the_tail) {
    enum { COUNT = 20000 };
    struct bfc_trace_record *records = calloc(COUNT, sizeof *records);
    struct trace trace = {.records = records, .count = COUNT}, back;
    struct plan_error error;
    for (uint32_t i = 0; i < COUNT; i++)
        records[i] = (struct bfc_trace_record){.sequence = i + 5, .serial = i, .bytes = i * 3};
    for (int codec = BFC_TRACE_PLAIN; codec <= BFC_TRACE_ZSTD; codec++) {
        struct file_text text = written(&trace, (enum bfc_trace_codec)codec);
        cr_assert(trace_parse(&back, &text, "t", &error), "%s", error.text);
        cr_assert_eq(back.count, COUNT);
        cr_assert_not(back.cut_off);
        cr_assert_arr_eq(back.records, records, COUNT * sizeof *records);
        trace_free(&back);
        text.size -= 3;
        cr_assert(trace_parse(&back, &text, "t", &error));
        cr_assert(back.cut_off && back.count < COUNT && back.count > 0);
        trace_free(&back);
        text.bytes[300] ^= 4;
        cr_assert_not(trace_parse(&back, &text, "t", &error));
        cr_assert(strstr(error.text, "t: block 0") != NULL);
        file_free(&text);
    }
    free(records);
}

static struct stacks some_stacks(void) {
    static struct bfc_who_site sites[] = {{0}, {.native = 1}};
    static struct bfc_who_frame frames[] = {{.place = 64}};
    static char texts[] = "\0exe";
    return (struct stacks){.sites = {(char *)sites, sizeof sites},
                           .frames = {(char *)frames, sizeof frames},
                           .texts = {texts, sizeof texts},
                           .executable = 1};
}

Test(trace, stacks_come_back_and_other_kinds_of_blocks_are_left_out) {
    struct bfc_trace_record records[] = {{.sequence = 1, .serial = 7, .bytes = 100},
                                         {.sequence = 2, .serial = 7, .op = BFC_TRACE_STACK}};
    struct trace trace = {.records = records, .count = 2, .stacks = some_stacks()}, back;
    char settings[] = "BFC_FREE=lazy\n";
    struct bfc_who who;
    struct plan_error error;
    for (int codec = BFC_TRACE_PLAIN; codec <= BFC_TRACE_ZSTD; codec++) {
        records[1].stream = 1;
        struct file_text text = written(&trace, (enum bfc_trace_codec)codec);
        cr_assert(trace_parse(&back, &text, "t", &error), "%s", error.text);
        cr_assert_null(back.settings);
        cr_assert(stacks_who(&back.stacks, &who));
        cr_assert_eq(who.header.sites, 2);
        cr_assert_eq(who.frames[who.sites[1].first].place, 64);
        cr_assert_str_eq(who.texts + who.header.executable, "exe");
        bfc_who_free(&who);
        trace_free(&back);
        text.bytes[sizeof(struct bfc_trace_header) + offsetof(struct bfc_trace_block, kind)] = 77;
        cr_assert_not(trace_parse(&back, &text, "t", &error));
        cr_assert_str_eq(error.text,
                         "t: block 1: record 1: its call stack 1 is not in the file before");
        file_free(&text);
        records[1].stream = 2;
        text = written(&trace, (enum bfc_trace_codec)codec);
        cr_assert_not(trace_parse(&back, &text, "t", &error));
        file_free(&text);
        records[1].stream = 1;
        trace.settings = settings;
        text = written(&trace, (enum bfc_trace_codec)codec);
        cr_assert(trace_parse(&back, &text, "t", &error), "%s", error.text);
        cr_assert_str_eq(back.settings, settings);
        trace_free(&back);
        file_free(&text);
        trace.settings = NULL;
    }
}

Test(plan_file, comes_back) {
    struct lifetimes l;
    struct plan_error error;
    struct plan_file plan;
    struct file_text text;
    char path[] = "/tmp/plan-test.XXXXXX";
    uint64_t offsets[] = {512, 0, 0}, bound = 1024, peak = 1024;
    close(mkstemp(path));
    cr_assert(parse_text(&l, "id,lower,upper,size\na,3,9,1\nb,0,9,512\nc,1,2,0\n", &error));
    const struct plan_content content = {&l, offsets, &bound, &peak, 512, 3};
    cr_assert(plan_write(&content, path, &error), "%s", error.text);
    cr_assert(file_read(&text, path, &error) && plan_looks_like(&text));
    cr_assert(plan_parse(&plan, &text, path, &error), "%s", error.text);
    cr_assert_eq(plan.header.events, 3);
    cr_assert_eq(plan.header.source_hash, l.hash);
    cr_assert_eq(plan.header.peak, 1024);
    cr_assert_eq(plan.header.gap, 3);
    cr_assert_eq(plan.events[0].row, 1); /* by birth */
    cr_assert_eq(plan.events[2].row, 0);
    cr_assert_eq(plan.events[2].offset, 512);
    cr_assert_eq(plan.events[2].size, 512);
    cr_assert_eq(plan.events[0].class_of, BFC_PLAN_LIFELONG);
    cr_assert_eq(plan.events[1].class_of, BFC_PLAN_PERIOD);
    cr_assert_eq(plan.header.anchors, 1); /* only the row of size 0 differs from all others */
    cr_assert_eq(plan.anchors[0].event, 1);
    cr_assert_eq(plan.anchors[0].token, bfc_plan_token(0, 0, 0));
    plan_free(&plan);
    lifetimes_free(&l);
    unlink(path);
}

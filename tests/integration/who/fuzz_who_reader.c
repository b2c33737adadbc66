/*
 * Damaged answers for the reader of bfcstat who: fuzz_who_reader [SEED [ROUNDS]].
 *
 * Each round takes an honest answer, damages it (words overwritten, bits flipped, the file cut
 * off), reads it, compares it with the honest one and shows what was accepted in each form. What
 * may happen is a refusal in one line or a picture; what may not is a fault or a sanitizer's
 * report. Prints the seed, so that a failure can be repeated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bfcstat/snapshot/write_snapshot.h"
#include "tools/bfcstat/who/lines.h"
#include "tools/bfcstat/who/show_who.h"

enum { SITES = 6, FRAMES = 12, OBJECTS = 3, REGIONS = 2, BLOCKS = 8, MARKS = 6, TEXTS = 128 };

struct answer {
    struct bfc_who_header header;
    struct bfc_who_site sites[SITES];
    struct bfc_who_frame frames[FRAMES];
    struct bfc_who_object objects[OBJECTS];
    struct bfc_who_region regions[REGIONS];
    struct bfc_who_block blocks[BLOCKS];
    struct bfc_who_mark living[MARKS], recent[MARKS];
    char texts[TEXTS];
};

static uint64_t state;

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next(void) {
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Each region: a block in use, a ready one, a pending one, a bare one. */
static void fill_blocks(struct answer *answer) {
    for (unsigned i = 0; i < REGIONS; i++)
        answer->regions[i] = (struct bfc_who_region){
            .start = (i + 1) << 20, .size = 4096, .first = 4 * i, .blocks = 4, .paged = i};
    for (unsigned i = 0; i < BLOCKS; i++)
        answer->blocks[i] = (struct bfc_who_block){.start = ((i / 4 + 1) << 20) + i % 4 * 1024,
                                                   .size = 1024,
                                                   .requested = i % 4 ? 0 : 1000,
                                                   .id = i % 4 ? 0 : i + 1,
                                                   .state = i % 4};
    for (unsigned i = 0; i < MARKS; i++)
        answer->living[i] = answer->recent[i] = (struct bfc_who_mark){.of = i, .site = i};
}

static void fill(struct answer *answer) {
    static const char texts[TEXTS] =
        "\0/nonexistent/lib.so\0train\0load\0loader.py\0/nonexistent/exe";
    *answer = (struct answer){
        .header = {.magic = BFC_WHO_MAGIC,
                   .version = BFC_WHO_VERSION,
                   .header_size = sizeof answer->header,
                   .site_size = sizeof answer->sites[0],
                   .frame_size = sizeof answer->frames[0],
                   .object_size = sizeof answer->objects[0],
                   .pid = 1,
                   .sites = SITES,
                   .frames = FRAMES,
                   .objects = OBJECTS,
                   .texts = TEXTS,
                   .written_ns = 2000000000,
                   .stacks = 1,
                   .executable = 43,
                   .regions = REGIONS,
                   .blocks = BLOCKS,
                   .living = MARKS,
                   .recent = MARKS},
    };
    fill_blocks(answer);
    memcpy(answer->texts, texts, sizeof texts);
    for (unsigned i = 0; i < SITES; i++)
        answer->sites[i] = (struct bfc_who_site){.first = 2 * i,
                                                 .native = 1,
                                                 .python = 1,
                                                 .samples = i,
                                                 .live_samples = i,
                                                 .blocks = i,
                                                 .bytes = 1000.0 * i,
                                                 .live_blocks = i,
                                                 .live_bytes = 1000.0 * i,
                                                 .live_variance = i,
                                                 .tag = i % 2 ? 21 : 0};
    for (unsigned i = 0; i < FRAMES; i += 2) {
        answer->frames[i] = (struct bfc_who_frame){.object = i % (OBJECTS + 1), .place = 64 * i};
        answer->frames[i + 1] = (struct bfc_who_frame){.object = 27, .file = 32, .place = 88};
    }
    for (unsigned i = 0; i < OBJECTS; i++)
        answer->objects[i] = (struct bfc_who_object){.end = 4096, .path = i ? 1 : 0};
}

static void damage(char *bytes, size_t size) {
    static const uint64_t extremes[] = {0, 1, 2, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    size_t offset = next() % (next() % 2 ? size - 8 : sizeof(struct bfc_who_header));
    uint64_t value = next() % 2 ? extremes[next() % 7] : next();
    if (next() % 3 == 0)
        bytes[offset] = (char)(bytes[offset] ^ 1 << next() % 8);
    else
        memcpy(bytes + (offset & ~(size_t)3), &value, next() % 2 ? 4 : 8);
}

static void fail(const char *what) {
    fprintf(stderr, "fuzz_who_reader: %s\n", what);
    abort();
}

static void show(const struct bfc_who *who, const struct bfc_who *before, FILE *sink) {
    struct who_names names;
    struct who_sums sums = {0};
    if (who_names_begin(&names, who, 0) && who_sum_up(&sums, &names, before)) {
        show_who_text(&sums, &names, next() % 2, 0, sink);
        show_who_json(&sums, &names, sink);
        show_who_collapsed(&sums, &names, sink);
        who_put_sites(&names, next() % 4, sink);
        who_put_moment(who, 1, sink);
        who_put_taken(who, next() % 4, sink);
        who_put_space(who, 1, sink);
    }
    who_sums_free(&sums);
    who_names_end(&names);
}

/* With an event of each kind, some of them of pools that there are not. */
static void write_snapshots(const struct bfc_who *who, FILE *sink) {
    static struct bfc_job job;
    static struct calls calls;
    struct moment moment = {.job = &job, .who = who, .calls = &calls};
    job.pools[0].state = BFC_POOL_ACTIVE;
    job.header.next_event = BFC_EVENT_KINDS;
    job.event_count = 0;
    for (unsigned i = 0; i < BFC_EVENT_KINDS; i++)
        job.events[job.event_count++] =
            (struct bfc_event){.stamp = i + 1,
                               .what = bfc_event_what((enum bfc_event_kind)i, next() % 2 * 63, i),
                               .address = 4096,
                               .bytes = next()};
    if (next() % 2)
        calls_begin(&calls, &job, who);
    else
        calls_begin_before(&calls, &job, who, &job);
    job.header.next_event *= 2;
    for (unsigned i = 0; i < BFC_EVENT_KINDS; i++)
        job.events[i].stamp += BFC_EVENT_KINDS;
    calls_add(&calls, &job);
    calls_finish(&calls, who);
    if (who_names_begin(&moment.names, who, 0)) {
        write_pickle(&moment, sink);
        write_chrome_trace(&moment, sink);
    }
    who_names_end(&moment.names);
    calls_free(&calls);
}

static void write_answer(const char *path, const struct answer *answer, size_t size) {
    FILE *file = fopen(path, "we");
    if (!file || fwrite(answer, 1, size, file) != size || fclose(file) != 0)
        fail("cannot write the answer");
}

static int round_once(const char *path, const struct bfc_who *honest, FILE *sink) {
    struct answer answer;
    struct bfc_who who;
    char reason[256] = "";
    size_t size = sizeof answer;
    fill(&answer);
    answer.header.written_ns *= 2;
    for (uint64_t i = next() % 4; i; i--)
        damage((char *)&answer, size);
    if (next() % 8 == 0)
        size = next() % size;
    write_answer(path, &answer, size);
    if (!bfc_who_read(path, &who, reason, sizeof reason)) {
        if (!*reason || strchr(reason, '\n'))
            fail("a refusal is not one line");
        return 0;
    }
    show(&who, NULL, sink);
    write_snapshots(&who, sink);
    if (bfc_who_follows(&who, honest))
        show(&who, honest, sink);
    bfc_who_free(&who);
    return 1;
}

int main(int count, char **arguments) {
    char path[] = "/tmp/bfc-fuzz-XXXXXX", reason[256];
    unsigned long rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 5000, shown = 0;
    struct answer answer;
    struct bfc_who honest;
    FILE *sink = fopen("/dev/null", "we");
    int file = mkstemp(path);
    state = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    printf("seed %llu, %lu rounds\n", (unsigned long long)state, rounds);
    fflush(stdout);
    if (!sink || file < 0)
        fail("no /dev/null or no folder");
    close(file);
    fill(&answer);
    write_answer(path, &answer, sizeof answer);
    if (!bfc_who_read(path, &honest, reason, sizeof reason))
        fail(reason);
    for (unsigned long i = 0; i < rounds; i++)
        shown += (unsigned long)round_once(path, &honest, sink);
    printf("%lu shown, %lu refused\n", shown, rounds - shown);
    bfc_who_free(&honest);
    unlink(path);
    if (shown == 0 || shown == rounds)
        fail("all was shown, or nothing");
    return fclose(sink) != 0;
}

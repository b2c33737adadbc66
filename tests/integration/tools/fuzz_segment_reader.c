/*
 * Damaged segments for the reader: fuzz_segment_reader [SEED [ROUNDS]].
 *
 * Each round takes an honest segment, damages it (words overwritten, bits flipped, the file cut
 * off, the header's numbers set to extremes), reads it, and shows what was accepted as text and
 * JSON. What may happen is a refusal or a picture; what may not is a fault, a sanitizer's report, a
 * text without end, a refusal without a line, or more than one. Prints the seed, so that a failure
 * can be repeated.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/tools/segment_writer.h"
#include "tools/bfcstat/view/view.h"

static uint64_t state;

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next(void) {
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static uint64_t extreme(void) {
    static const uint64_t values[] = {0, 1, 2, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    return next() % 2 ? values[next() % 7] : next();
}

/* Mostly where it hurts: the beginnings of all parts, not the zeros behind them. */
static size_t pick_offset(size_t size) {
    static const size_t starts[] = {0,
                                    0,
                                    80,
                                    offsetof(struct bfc_segment_header, configuration),
                                    offsetof(struct bfc_segment_header, owner),
                                    BFC_SEGMENT_POOLS_OFFSET,
                                    BFC_SEGMENT_MAP_OFFSET,
                                    BFC_SEGMENT_LANDMARKS_OFFSET,
                                    BFC_SEGMENT_EVENTS_OFFSET};
    size_t start = starts[next() % (sizeof starts / sizeof starts[0])];
    return next() % 4 ? start + next() % 128 : next() % size;
}

static void damage(char *bytes, size_t size) {
    size_t offset = pick_offset(size - 8);
    uint64_t value = extreme();
    switch (next() % 4) {
    case 0:
        bytes[offset] = (char)(bytes[offset] ^ 1 << next() % 8);
        break;
    case 1:
        memcpy(bytes + offset, &value, 4);
        break;
    case 2:
        memcpy(bytes + (offset & ~(size_t)7), &value, 8);
        break;
    default:
        memset(bytes + offset, (int)(value & 0xFF), next() % (size - offset));
        break;
    }
}

static void fail(const char *what) {
    fprintf(stderr, "fuzz_segment_reader: %s\n", what);
    abort();
}

/* A sample: a name, labels whose quotes pair, a number, and no control character. */
static bool is_sample(const char *line) {
    bool quoted = false;
    size_t length = strlen(line);
    const char *end = line;
    for (const char *c = line; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 127)
            return false;
        if (quoted && *c == '\\' && c[1])
            c++; /* whatever it is */
        else if (*c == '"')
            quoted = !quoted;
        else if (*c == ' ' && !quoted)
            end = c;
    }
    char *behind;
    strtod(end, &behind);
    return !quoted && end > line && behind == line + length && !strncmp(line, "bfcpreload_", 11);
}

static void check_metrics(char *text) {
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;)
        if (line[0] != '#' && !is_sample(line))
            fail(line);
}

static void show_metrics(const struct findings *findings) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream || !show_jobs_metrics(findings, METRICS_OPEN, stream) || fclose(stream) != 0)
        fail("no memory");
    check_metrics(text);
    free(text);
}

static void show(const struct bfc_job *job, FILE *sink) {
    struct job_identity identity = {.comm = "odd\"\\\n", .user = "0"};
    struct findings findings = {
        .jobs = (struct bfc_job *)job, .job_count = 1, .identities = &identity};
    show_metrics(&findings);
    show_job_text(job, sink);
    show_job_json(job, sink);
    show_jobs_text(&findings, 80, sink);
    show_jobs_json(&findings, sink);
}

/* What the exporter reads is what everybody does. */
static void read_figures(int directory, const struct bfc_segment_name *name,
                         const struct bfc_job *read) {
    static struct bfc_job job;
    char reason[256];
    memset(&job, 0, sizeof job);
    if (bfc_segment_read_figures(directory, name, &job, reason, sizeof reason) != BFC_READ_OK ||
        memcmp(&job.header, &read->header, sizeof job.header) != 0)
        fail("figures are not what is read in full");
}

static int round_once(int directory, const struct bfc_segment_name *name, FILE *sink) {
    static union test_segment segment, honest;
    static struct bfc_job job;
    char reason[256] = "";
    size_t size = sizeof segment;
    if (honest.header.magic == 0)
        test_segment_fill(&honest);
    segment = honest;
    for (uint64_t i = next() % 4; i; i--)
        damage((char *)&segment, size);
    if (next() % 8 == 0)
        size = next() % size;
    int file = openat(directory, name->text, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, &segment, size) != (ssize_t)size)
        fail("cannot write the segment");
    close(file);
    if (bfc_segment_read(directory, name, &job, reason, sizeof reason) == BFC_READ_OK) {
        show(&job, sink);
        read_figures(directory, name, &job);
        return 1;
    }
    if (!*reason || strchr(reason, '\n'))
        fail("a refusal is not one line");
    return 0;
}

int main(int count, char **arguments) {
    char folder[] = "/tmp/bfc-fuzz-XXXXXX", text[64];
    unsigned long rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 2000, shown = 0;
    union test_segment *segment = calloc(1, sizeof *segment);
    struct bfc_segment_name name;
    FILE *sink = fopen("/dev/null", "we");
    state = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    printf("seed %llu, %lu rounds\n", (unsigned long long)state, rounds);
    fflush(stdout);
    if (!segment || !sink || !mkdtemp(folder))
        fail("no memory, no /dev/null or no folder");
    test_segment_fill(segment);
    test_segment_name(segment, text, sizeof text);
    bfc_segment_name_parse(text, &name);
    int directory = bfc_segment_directory_open(folder);
    for (unsigned long i = 0; i < rounds; i++)
        shown += (unsigned long)round_once(directory, &name, sink);
    printf("%lu shown, %lu refused\n", shown, rounds - shown);
    unlinkat(directory, name.text, 0);
    close(directory);
    rmdir(folder);
    free(segment);
    return fclose(sink) != 0;
}

#include "tools/bfcstat/who/show_who.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file_name.h"
#include "tools/text/json_writer.h"
#include "tools/text/print_text.h"

#define LINE_TEXT WHO_PLACE

static const char *const stacks_names[] = {"off", "sample", "all"};

static const char *stacks_name(const struct bfc_who *who) {
    return who->header.stacks < 3 ? stacks_names[who->header.stacks] : "unknown";
}

/* Writes an amount of bytes with its unit. A negative amount has its sign; if the amount is a
 * change, a positive one has its sign, too. */
static char *amount_text(double bytes, bool change, char *text, size_t size) {
    char figure[TEXT_FIGURE - 2];
    bfc_bytes_text((uint64_t)fmin(fabs(bytes), 0x1p63), figure, sizeof figure);
    snprintf(text, size, "%s%s", bytes < 0 ? "-" : change ? "+" : "", figure);
    return text;
}

static void add_row(struct text_table *table, const struct who_sums *sums,
                    const struct who_sum *sum, const char *name) {
    char bytes[TEXT_FIGURE], error[TEXT_FIGURE], blocks[TEXT_FIGURE], last[TEXT_FIGURE + 2];
    bool change = sums->seconds > 0;
    amount_text(sum->bytes, change, bytes, sizeof bytes);
    amount_text(who_error(sum), false, error, sizeof error);
    snprintf(blocks, sizeof blocks, change ? "%+.0f" : "%.0f", sum->blocks);
    if (change)
        snprintf(last, sizeof last, "%s/s",
                 amount_text(sum->bytes / sums->seconds, true, error, sizeof error));
    else
        bfc_share_text(sums->in_use > 0 ? fmin(sum->bytes / sums->in_use, 1) : -1, last,
                       sizeof last);
    amount_text(who_error(sum), false, error, sizeof error);
    text_table_add(table, (const char *[]){bytes, error, blocks, last, name});
}

static struct text_table begin_table(const struct who_sums *sums, const char *what) {
    struct text_table table = {.columns = 5, .right = 0xf};
    bool change = sums->seconds > 0;
    text_table_add(&table, (const char *[]){change ? "CHANGE" : "IN USE", "+-", "BLOCKS",
                                            change ? "RATE" : "SHARE", what});
    return table;
}

/* Whether an amount of memory is shown. A change is shown only if it is larger than twice its
 * standard error; a smaller one may be due to chance, because amounts are estimates from
 * samples. */
static bool is_shown(const struct who_sums *sums, const struct who_sum *sum) {
    bool change = sums->seconds > 0;
    return fabs(sum->bytes) >= 1 && (!change || fabs(sum->bytes) > 2 * who_error(sum));
}

/* Adds a row for the memory that no other row shows: the bytes in use by the pools' own counters,
 * less the sum `shown` of the other rows. Adds none if the difference is at most a hundredth of the
 * bytes in use. */
static void add_rest(struct text_table *table, const struct who_sums *sums, double shown) {
    struct who_sum rest = {.bytes = sums->in_use - shown};
    char bytes[TEXT_FIGURE], last[TEXT_FIGURE + 2];
    bool change = sums->seconds > 0;
    double size = change ? fabs(rest.bytes) : rest.bytes;
    if (size < 1 || size <= 0.01 * fabs(sums->in_use))
        return;
    if (change)
        snprintf(last, sizeof last, "%s/s",
                 amount_text(rest.bytes / sums->seconds, true, bytes, sizeof bytes));
    else
        bfc_share_text(rest.bytes / sums->in_use, last, sizeof last);
    amount_text(rest.bytes, change, bytes, sizeof bytes);
    text_table_add(
        table,
        (const char *[]){
            bytes, "", "", last,
            change ? "not attributed: not sampled, or within the error"
                   : "not attributed: blocks without a sample (BFC_STACKS=all has one of each)"});
}

static void show_groups(const struct who_sums *sums, bool by_tag, FILE *stream) {
    struct text_table table = begin_table(sums, by_tag ? "TAG" : "LIBRARY");
    const struct who_sum *groups = by_tag ? sums->tags : sums->libraries;
    double shown = 0;
    for (size_t i = 0; i < (by_tag ? sums->tag_count : sums->library_count); i++) {
        char name[LINE_TEXT];
        const char *text = by_tag ? groups[i].name : bfc_file_name(groups[i].name);
        if (!is_shown(sums, &groups[i]))
            continue;
        text_printable(*text ? text : by_tag ? "no tag" : "unknown", name, sizeof name);
        add_row(&table, sums, &groups[i], name);
        shown += groups[i].bytes;
    }
    add_rest(&table, sums, shown);
    if (table.rows > 1)
        text_table_print(&table, stream, 0);
    else
        fputs(sums->seconds > 0 ? "no change\n" : "nothing is in use\n", stream);
    text_table_free(&table);
}

static void show_site(const struct who_sums *sums, struct who_names *names,
                      const struct who_sum *sum, FILE *stream) {
    struct who_line lines[WHO_LINES];
    char text[2 * LINE_TEXT], shown[2 * LINE_TEXT], place[LINE_TEXT];
    struct text_table table = {.columns = 5, .right = 0xf};
    size_t count = who_stack(names, sum->site, lines, WHO_LINES);
    const char *tag = who_tag(names, sum->site);
    who_place(names, sum->site, place, sizeof place);
    snprintf(text, sizeof text, "%s%s%s", place, *tag && *place ? ", " : "", tag);
    add_row(&table, sums, sum, text_printable(text, shown, sizeof shown));
    text_table_print(&table, stream, 0);
    text_table_free(&table);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "    %s\n",
                text_printable(who_line_text(&lines[i], text, sizeof text), shown, sizeof shown));
    if (!count)
        fputs("    no stack: it could not be walked, or there was no room\n", stream);
}

/* Says by how much the sum of all estimates differs from the bytes in use by the pools' own
 * counters. Says nothing of a difference below twice the standard error, which may be due to
 * chance, or below a hundredth of the bytes in use, which blocks that came or went between the two
 * countings may explain. If changes are shown, the table's last row has the difference instead
 * (add_rest). */
static void show_mismatch(const struct who_sums *sums, FILE *stream) {
    char bytes[TEXT_FIGURE];
    double more = sums->all.bytes - sums->in_use;
    if (sums->seconds > 0 || fabs(more) <= 2 * who_error(&sums->all) ||
        fabs(more) <= 0.01 * fabs(sums->in_use))
        return;
    fprintf(stream, "the figures below come to %s %s than that: too few samples\n",
            amount_text(fabs(more), false, bytes, sizeof bytes), more < 0 ? "less" : "more");
}

static void show_head(const struct who_sums *sums, const struct bfc_who *who, FILE *stream) {
    char bytes[TEXT_FIGURE], error[TEXT_FIGURE], samples[TEXT_FIGURE];
    bool change = sums->seconds > 0;
    fprintf(stream, "job %d: %s %s", who->header.pid,
            amount_text(sums->in_use, change, bytes, sizeof bytes),
            change ? "change" : "in use, as asked for");
    if (change)
        fprintf(stream, " in %.1f s", sums->seconds);
    fprintf(stream, " (BFC_STACKS=%s: %s sample%s", stacks_name(who),
            text_count(sums->all.samples, samples, sizeof samples), bfc_plural(sums->all.samples));
    if (who_error(&sums->all) >= 1)
        fprintf(stream, ", standard error %s",
                amount_text(who_error(&sums->all), false, error, sizeof error));
    fputs(")\n", stream);
    show_mismatch(sums, stream);
    if (who->header.lost)
        fprintf(stream, "%s samples were lost for want of room: the figures are too low\n",
                text_count(who->header.lost, samples, sizeof samples));
}

enum { GROWING = 3 };

/* Shows those places in the program whose memory has grown most, if by more than twice the standard
 * error. */
static void show_growth(const struct who_sums *sums, FILE *stream) {
    char rate[TEXT_FIGURE], shown[LINE_TEXT];
    for (size_t i = 0; i < sums->place_count && i < GROWING; i++) {
        const struct who_sum *sum = &sums->places[i];
        if (sum->bytes < 1 || sum->bytes <= 2 * who_error(sum))
            continue;
        fprintf(stream, "grows %s/s at %s\n",
                amount_text(sum->bytes / sums->seconds, false, rate, sizeof rate),
                *sum->name ? text_printable(sum->name, shown, sizeof shown) : "an unknown place");
    }
}

void show_who_text(const struct who_sums *sums, struct who_names *names, bool by_tag, size_t most,
                   FILE *stream) {
    size_t shown = 0, left = 0;
    show_head(sums, names->who, stream);
    if (sums->seconds > 0)
        show_growth(sums, stream);
    fputc('\n', stream);
    show_groups(sums, by_tag, stream);
    for (size_t i = 0; i < sums->site_count; i++) {
        if (!is_shown(sums, &sums->sites[i]))
            continue;
        if (most && shown == most) {
            left++;
            continue;
        }
        fputc('\n', stream);
        show_site(sums, names, &sums->sites[i], stream);
        shown++;
    }
    if (left)
        fprintf(stream, "\n%zu more site%s: --sites=0 shows all\n", left, bfc_plural(left));
}

/* Writes an estimate of bytes or blocks as a whole number, because it is not exact enough for
 * digits after the point. */
static void show_whole(struct json_writer *writer, const char *key, double figure) {
    json_signed(writer, key, llround(fmin(figure, 0x1p62)));
}

static void show_sum(struct json_writer *writer, const struct who_sum *sum) {
    show_whole(writer, "bytes", sum->bytes);
    show_whole(writer, "bytes_error", who_error(sum));
    show_whole(writer, "blocks", sum->blocks);
    show_whole(writer, "allocated_bytes", sum->allocated_bytes);
    show_whole(writer, "allocated_blocks", sum->allocated_blocks);
    json_unsigned(writer, "samples", sum->samples);
}

static void show_line(struct json_writer *writer, const struct who_line *line) {
    char place[32];
    json_object(writer, NULL);
    if (line->function)
        json_string(writer, "function", line->function);
    else
        json_null(writer, "function");
    json_string(writer, "file", line->object ? line->object : line->source);
    if (line->source)
        json_unsigned(writer, "line", line->line);
    if (line->object && line->source) {
        json_string(writer, "source", line->source);
        json_boolean(writer, "inlined", line->inlined);
    }
    if (line->object) {
        snprintf(place, sizeof place, "0x%" PRIx64, line->place);
        json_string(writer, "offset", place);
    }
    json_object_end(writer);
}

static void show_site_json(struct json_writer *writer, struct who_names *names,
                           const struct who_sum *sum) {
    struct who_line lines[WHO_LINES];
    char place[WHO_PLACE];
    size_t count = who_stack(names, sum->site, lines, WHO_LINES);
    json_object(writer, NULL);
    show_sum(writer, sum);
    json_string(writer, "library", who_library(names, sum->site));
    json_string(writer, "tag", who_tag(names, sum->site));
    json_string(writer, "place", who_place(names, sum->site, place, sizeof place));
    json_array(writer, "frames");
    for (size_t i = 0; i < count; i++)
        show_line(writer, &lines[i]);
    json_array_end(writer);
    json_object_end(writer);
}

static void show_groups_json(struct json_writer *writer, const char *all, const char *one,
                             const struct who_sum *groups, size_t count) {
    json_array(writer, all);
    for (size_t i = 0; i < count; i++) {
        json_object(writer, NULL);
        json_string(writer, one, groups[i].name);
        show_sum(writer, &groups[i]);
        json_object_end(writer);
    }
    json_array_end(writer);
}

void show_who_json(const struct who_sums *sums, struct who_names *names, FILE *stream) {
    struct json_writer writer = json_writer_init(stream);
    json_object(&writer, NULL);
    json_signed(&writer, "pid", names->who->header.pid);
    json_string(&writer, "stacks", stacks_name(names->who));
    json_unsigned(&writer, "samples_lost", names->who->header.lost);
    if (sums->seconds > 0)
        json_number(&writer, "seconds", sums->seconds);
    show_whole(&writer, "in_use", sums->in_use);
    json_object(&writer, "all");
    show_sum(&writer, &sums->all);
    json_object_end(&writer);
    show_groups_json(&writer, "libraries", "library", sums->libraries, sums->library_count);
    show_groups_json(&writer, "tags", "tag", sums->tags, sums->tag_count);
    json_array(&writer, "sites");
    for (size_t i = 0; i < sums->site_count; i++)
        show_site_json(&writer, names, &sums->sites[i]);
    json_array_end(&writer);
    json_object_end(&writer);
}

void show_who_collapsed(const struct who_sums *sums, struct who_names *names, FILE *stream) {
    for (size_t i = 0; i < sums->site_count; i++) {
        struct who_line lines[WHO_LINES];
        char text[LINE_TEXT];
        size_t count = who_stack(names, sums->sites[i].site, lines, WHO_LINES);
        if (sums->sites[i].bytes < 1)
            continue;
        for (size_t at = count; at-- > 0;) {
            fputs(who_frame_text(&lines[at], text, sizeof text), stream);
            fputc(at ? ';' : ' ', stream);
        }
        fprintf(stream, "%s%.0f\n", count ? "" : "unknown ", sums->sites[i].bytes);
    }
}

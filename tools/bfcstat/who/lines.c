#include "tools/bfcstat/who/lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tools/text/json_writer.h"

static struct json_writer begin_line(const char *type, FILE *stream) {
    struct json_writer json = json_writer_init(stream);
    json.compact = true;
    json_object(&json, NULL);
    json_string(&json, "type", type);
    return json;
}

/* Writes a frame of a call stack twice: as text for people, and in the form for flame graphs. */
static void put_frame(struct json_writer *json, const struct who_line *line) {
    char text[WHO_PLACE];
    json_array(json, NULL);
    json_string(json, NULL, who_line_text(line, text, sizeof text));
    json_string(json, NULL, who_frame_text(line, text, sizeof text));
    json_array_end(json);
}

static void put_site(struct json_writer *json, struct who_names *names,
                     const struct bfc_who_site *site) {
    struct who_line lines[WHO_LINES];
    char place[WHO_PLACE];
    size_t count = who_stack(names, site, lines, WHO_LINES);
    json_object(json, NULL);
    json_string(json, "library", who_library(names, site));
    json_string(json, "tag", who_tag(names, site));
    json_string(json, "place", who_place(names, site, place, sizeof place));
    json_array(json, "frames");
    for (size_t i = 0; i < count; i++)
        put_frame(json, &lines[i]);
    json_array_end(json);
    json_object_end(json);
}

void who_put_sites(struct who_names *names, uint64_t first, FILE *stream) {
    if (first >= names->who->header.sites)
        return;
    struct json_writer json = begin_line("sites", stream);
    json_unsigned(&json, "first", first);
    json_array(&json, "sites");
    for (uint64_t i = first; i < names->who->header.sites; i++)
        put_site(&json, names, &names->who->sites[i]);
    json_array_end(&json);
    json_object_end(&json);
}

static void put_held(const struct bfc_who_site *site, uint64_t number, bool first, FILE *stream) {
    fprintf(stream, "%s[%" PRIu64 ",%.0f,%.2f,%.0f,%.0f,%" PRIu64 "]", first ? "" : ",", number,
            site->live_bytes, site->live_blocks, sqrt(site->live_variance), site->bytes,
            site->live_samples);
}

static int by_id(const void *left, const void *right) {
    const struct bfc_who_block *a = *(const struct bfc_who_block *const *)left;
    const struct bfc_who_block *b = *(const struct bfc_who_block *const *)right;
    return (a->id > b->id) - (a->id < b->id);
}

static size_t list_by_id(const struct bfc_who *who, const struct bfc_who_block **list) {
    size_t count = 0;
    for (uint64_t i = 0; i < who->header.blocks; i++)
        if (who->blocks[i].state == BFC_WHO_IN_USE)
            list[count++] = &who->blocks[i];
    qsort(list, count, sizeof *list, by_id);
    return count;
}

/* Writes the address, the requested size and the site (call stack) of each block in use whose call
 * stack is known. Writes no blocks if there is no memory for a sorted list of them. */
static void put_blocks(const struct bfc_who *who, FILE *stream) {
    const struct bfc_who_block **list = malloc((who->header.blocks + 1) * sizeof *list);
    size_t count = list ? list_by_id(who, list) : 0;
    bool first = true;
    for (uint64_t i = 0; list && i < who->header.living; i++) {
        const struct bfc_who_block wanted = {.id = who->living[i].of}, *key = &wanted;
        const struct bfc_who_block **found = bsearch(&key, list, count, sizeof *list, by_id);
        if (!found)
            continue;
        fprintf(stream, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", first ? "" : ",",
                (*found)->start, (*found)->requested, who->living[i].site);
        first = false;
    }
    free(list);
}

void who_put_moment(const struct bfc_who *who, uint64_t us, FILE *stream) {
    fprintf(stream,
            "{\"type\":\"who\",\"us\":%" PRIu64 ",\"exact\":%s,\"lost\":%" PRIu64 ",\"held\":[", us,
            who->header.stacks == 2 ? "true" : "false", who->header.lost);
    bool first = true;
    for (uint64_t i = 0; i < who->header.sites; i++)
        if (who->sites[i].samples) {
            put_held(&who->sites[i], i, first, stream);
            first = false;
        }
    fputs("],\"blocks\":[", stream);
    put_blocks(who, stream);
    fputs("]}\n", stream);
}

void who_put_space(const struct bfc_who *who, uint64_t us, FILE *stream) {
    const char *comma = "";
    fprintf(stream, "{\"type\":\"space\",\"us\":%" PRIu64 ",\"left_out\":%" PRIu64 ",\"regions\":[",
            us, who->header.left_out);
    for (uint64_t i = 0; i < who->header.regions; i++, comma = ",")
        fprintf(stream, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu32 "]", comma, who->regions[i].start,
                who->regions[i].size, who->regions[i].pool);
    fputs("],\"blocks\":[", stream);
    comma = "";
    for (uint64_t i = 0; i < who->header.blocks; i++) {
        const struct bfc_who_block *block = &who->blocks[i];
        if (block->state == BFC_WHO_READY)
            continue;
        fprintf(stream, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", comma, block->start, block->size,
                block->state);
        comma = ",";
    }
    fputs("]}\n", stream);
}

uint64_t who_put_taken(const struct bfc_who *who, uint64_t first, FILE *stream) {
    uint64_t next = first;
    unsigned count = 0;
    for (uint64_t i = 0; i < who->header.recent; i++) {
        const struct bfc_who_mark *mark = &who->recent[i];
        if (mark->of < first)
            continue;
        fputs(count++ ? "," : "{\"type\":\"taken\",\"sites\":[", stream);
        fprintf(stream, "[%" PRIu64 ",%" PRIu64 "]", mark->of, mark->site);
        next = mark->of >= next ? mark->of + 1 : next;
    }
    if (count)
        fputs("]}\n", stream);
    return next;
}

void who_put_reason(const char *reason, uint64_t us, FILE *stream) {
    struct json_writer json = begin_line("who", stream);
    json_unsigned(&json, "us", us);
    json_string(&json, "reason", reason);
    json_object_end(&json);
}

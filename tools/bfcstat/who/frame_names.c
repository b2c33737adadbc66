#include "tools/bfcstat/who/frame_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_name.h"
#include "tools/text/print_text.h"

bool who_names_begin(struct who_names *names, const struct bfc_who *who, int pid) {
    *names = (struct who_names){.who = who, .pid = pid};
    names->symbols = calloc(who->header.objects + 1, sizeof(struct symbols *));
    names->opened = calloc(who->header.objects + 1, sizeof(bool));
    return names->symbols && names->opened;
}

void who_names_end(struct who_names *names) {
    for (uint64_t i = 0; names->symbols && i < names->who->header.objects; i++)
        symbols_close(names->symbols[i]);
    free(names->symbols);
    free(names->opened);
}

/* Returns the path of the object with index `object` - 1, or "" for `object` 0. An object without a
 * path is the executable. */
static const char *path_of(const struct who_names *names, uint32_t object) {
    if (object == 0)
        return "";
    const char *path = names->who->texts + names->who->objects[object - 1].path;
    return *path ? path : names->who->texts + names->who->header.executable;
}

static struct symbols *symbols_of(struct who_names *names, uint32_t object) {
    char path[4200];
    if (object == 0)
        return NULL;
    if (!names->opened[object - 1]) {
        names->opened[object - 1] = true;
        const char *name = path_of(names, object);
        if (names->pid)
            snprintf(path, sizeof path, *name == '/' ? "/proc/%d/root%s" : "/proc/%d/cwd/%s",
                     names->pid, name);
        else
            snprintf(path, sizeof path, "%s", name);
        names->symbols[object - 1] = symbols_open(path);
    }
    return names->symbols[object - 1];
}

/* ---- frames ---- */

static bool begins_with(const char *text, const char *begin) {
    return strncmp(text, begin, strlen(begin)) == 0;
}

static bool is_interpreter(const char *path) {
    const char *name = bfc_file_name(path);
    return begins_with(name, "python") || begins_with(name, "libpython");
}

static struct who_line native_line(struct who_names *names, const struct bfc_who_frame *frame) {
    struct who_line line = {.file = path_of(names, frame->object), .place = frame->place};
    struct symbols *symbols = symbols_of(names, frame->object);
    if (symbols)
        line.function = symbols_find(symbols, frame->place, &line.place);
    return line;
}

static struct who_line python_line(const struct who_names *names,
                                   const struct bfc_who_frame *frame) {
    return (struct who_line){.function = names->who->texts + frame->object,
                             .file = names->who->texts + frame->file,
                             .line = frame->place};
}

size_t who_stack(struct who_names *names, const struct bfc_who_site *site, struct who_line *lines,
                 size_t most) {
    const struct bfc_who_frame *frames = names->who->frames + site->first;
    size_t count = 0;
    for (uint32_t i = 0; i < site->native && count < most; i++) {
        if (site->python && is_interpreter(path_of(names, frames[i].object)))
            break;
        lines[count++] = native_line(names, &frames[i]);
    }
    for (uint32_t i = 0; i < site->python && count < most; i++)
        lines[count++] = python_line(names, &frames[site->native + i]);
    return count;
}

const char *who_tag(const struct who_names *names, const struct bfc_who_site *site) {
    return names->who->texts + site->tag;
}

const char *who_library(struct who_names *names, const struct bfc_who_site *site) {
    const struct bfc_who_frame *frames = names->who->frames + site->first;
    for (uint32_t i = 0; i < site->native; i++) {
        const char *path = path_of(names, frames[i].object);
        if (!bfc_who_hands_on(path))
            return path;
    }
    return "";
}

char *who_line_text(const struct who_line *line, char *text, size_t size) {
    const char *file = bfc_file_name(line->file);
    if (line->line)
        snprintf(text, size, "%s (%s:%" PRIu64 ")", line->function, file, line->line);
    else if (line->function)
        snprintf(text, size, "%s+0x%" PRIx64 " (%s)", line->function, line->place, file);
    else
        snprintf(text, size, "0x%" PRIx64 " (%s)", line->place, *file ? file : "no file");
    return text;
}

char *who_frame_text(const struct who_line *line, char *text, size_t size) {
    char plain[WHO_PLACE];
    if (line->function && !line->line)
        snprintf(plain, sizeof plain, "%s`%s", bfc_file_name(line->file), line->function);
    else
        who_line_text(line, plain, sizeof plain);
    text_printable(plain, text, size);
    for (char *at = text; *at; at++)
        *at = *at == ';' ? ',' : *at;
    return text;
}

/* Whether a source file of Python belongs to a package or to Python itself, and not to the user. */
static bool is_packaged(const char *file) {
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
           strstr(file, "/lib/python") || *file == '<';
}

static const struct who_line *find_innermost(const struct who_line *lines, size_t count) {
    const struct who_line *packaged = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!lines[i].line)
            continue;
        if (!is_packaged(lines[i].file))
            return &lines[i];
        if (!packaged)
            packaged = &lines[i];
    }
    if (packaged)
        return packaged;
    for (size_t i = 0; i < count; i++)
        if (!bfc_who_hands_on(lines[i].file))
            return &lines[i];
    return NULL;
}

char *who_place(struct who_names *names, const struct bfc_who_site *site, char *text, size_t size) {
    struct who_line lines[WHO_LINES];
    const struct who_line *line = find_innermost(lines, who_stack(names, site, lines, WHO_LINES));
    text[0] = '\0';
    if (line && line->line)
        snprintf(text, size, "%s:%" PRIu64, bfc_file_name(line->file), line->line);
    else if (line)
        who_line_text(line, text, size);
    return text;
}

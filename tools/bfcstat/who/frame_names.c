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
    names->lines = calloc(who->header.objects + 1, sizeof(struct source_lines *));
    names->opened = calloc(who->header.objects + 1, sizeof(bool));
    return names->symbols && names->lines && names->opened;
}

void who_names_end(struct who_names *names) {
    for (uint64_t i = 0; names->symbols && i < names->who->header.objects; i++)
        symbols_close(names->symbols[i]);
    for (uint64_t i = 0; names->lines && i < names->who->header.objects; i++)
        source_lines_close(names->lines[i]);
    free(names->symbols);
    free(names->lines);
    free(names->opened);
}

/* Returns the path of a loaded object (executable or shared library). `object` is its index in the
 * job's answer, plus 1; for 0 returns "". An object without a path is the executable. */
static const char *path_of(const struct who_names *names, uint32_t object) {
    if (object == 0)
        return "";
    const char *path = names->who->texts + names->who->objects[object - 1].path;
    return *path ? path : names->who->texts + names->who->header.executable;
}

static void open_object(struct who_names *names, uint32_t object) {
    char path[4200];
    const char *name = path_of(names, object);
    if (names->opened[object - 1])
        return;
    names->opened[object - 1] = true;
    if (names->pid)
        snprintf(path, sizeof path, *name == '/' ? "/proc/%d/root%s" : "/proc/%d/cwd/%s",
                 names->pid, name);
    else
        snprintf(path, sizeof path, "%s", name);
    names->symbols[object - 1] = symbols_open(path);
    names->lines[object - 1] = source_lines_open(path);
}

static bool begins_with(const char *text, const char *begin) {
    return strncmp(text, begin, strlen(begin)) == 0;
}

static bool is_interpreter(const char *path) {
    const char *name = bfc_file_name(path);
    return begins_with(name, "python") || begins_with(name, "libpython");
}

/* Whether the shared library with this file name only passes calls from Python on to C, so that its
 * frames say nothing about the program. */
static bool is_between(const char *name) {
    return bfc_who_hands_on(name) || begins_with(name, "_ctypes");
}

/* Stores the functions of a native frame in `lines`, innermost first: those that the compiler has
 * inlined at this place, and last the one that contains them. Returns how many elements it has
 * stored, at most `most`. */
static size_t native_lines(struct who_names *names, const struct bfc_who_frame *frame,
                           struct who_line *lines, size_t most) {
    struct who_line line = {.object = path_of(names, frame->object), .place = frame->place};
    const struct source_line *found = NULL;
    size_t count = 0, kept = 0;
    if (frame->object) {
        open_object(names, frame->object);
        struct symbols *symbols = names->symbols[frame->object - 1];
        if (symbols)
            line.function = symbols_find(symbols, frame->place, &line.place);
        if (names->lines[frame->object - 1])
            count = source_lines_find(names->lines[frame->object - 1], frame->place, &found);
    }
    for (size_t i = 0; i + 1 < count && kept + 1 < most; i++)
        lines[kept++] = (struct who_line){.function = found[i].function,
                                          .object = line.object,
                                          .source = found[i].file,
                                          .line = found[i].line,
                                          .place = line.place,
                                          .inlined = true};
    if (count && !line.function)
        line.function = found[count - 1].function;
    if (count && line.function) {
        line.source = found[count - 1].file;
        line.line = found[count - 1].line;
    }
    lines[kept++] = line;
    return kept;
}

static struct who_line python_line(const struct who_names *names,
                                   const struct bfc_who_frame *frame) {
    return (struct who_line){.function = names->who->texts + frame->object,
                             .source = names->who->texts + frame->file,
                             .line = frame->place};
}

size_t who_stack(struct who_names *names, const struct bfc_who_site *site, struct who_line *lines,
                 size_t most) {
    const struct bfc_who_frame *frames = names->who->frames + site->first;
    size_t count = 0;
    for (uint32_t i = 0; i < site->native && count < most; i++) {
        const char *path = path_of(names, frames[i].object);
        if (site->python && is_interpreter(path))
            break;
        if (!site->python || !is_between(bfc_file_name(path)))
            count += native_lines(names, &frames[i], lines + count, most - count);
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

/* Returns a function's name. If the name is long, returns a copy in `text` that leaves out the
 * arguments of templates. */
static const char *shorten_name(const char *name, char *text, size_t size) {
    enum { LONG = 100 };
    size_t used = 0;
    unsigned depth = 0;
    if (strlen(name) <= LONG)
        return name;
    for (const char *at = name; *at && used + 2 < size; at++) {
        static const char call[] = "operator";
        /* "<" and ">" in the name of an operator, as in operator<, enclose no template arguments */
        if (begins_with(at, call)) {
            size_t length = sizeof call - 1;
            length += begins_with(at + length, "()") ? 2 : strspn(at + length, "<>=-!");
            for (size_t i = 0; depth == 0 && i < length && used + 2 < size; i++)
                text[used++] = at[i];
            at += length - 1;
            continue;
        }
        if (*at == '>' && depth && at[-1] != '-')
            depth--;
        if (depth == 0)
            text[used++] = *at;
        if (*at == '<')
            depth++;
    }
    text[used] = '\0';
    return text;
}

char *who_line_text(const struct who_line *line, char *text, size_t size) {
    const char *object = line->object ? bfc_file_name(line->object) : "";
    char name[WHO_PLACE];
    const char *function = line->function ? shorten_name(line->function, name, sizeof name) : "?";
    if (line->source)
        snprintf(text, size, "%s (%s:%" PRIu64 ")", function, bfc_file_name(line->source),
                 line->line);
    else if (line->function)
        snprintf(text, size, "%s+0x%" PRIx64 " (%s)", function, line->place, object);
    else
        snprintf(text, size, "0x%" PRIx64 " (%s)", line->place, *object ? object : "no file");
    return text;
}

char *who_frame_text(const struct who_line *line, char *text, size_t size) {
    char plain[WHO_PLACE], name[WHO_PLACE];
    if (line->function && line->object)
        snprintf(plain, sizeof plain, "%s`%s", bfc_file_name(line->object),
                 shorten_name(line->function, name, sizeof name));
    else
        who_line_text(line, plain, sizeof plain);
    text_printable(plain, text, size);
    for (char *at = text; *at; at++)
        *at = *at == ';' ? ',' : *at;
    return text;
}

static bool holds_any(const char *text, const char *const *parts) {
    for (; *parts; parts++)
        if (strstr(text, *parts))
            return true;
    return false;
}

/* Whether a source file belongs to an installed package of Python, C or C++, and is not the user's
 * own code. A name that begins with '<' is not a file, such as Python's "<string>". */
static bool is_packaged(const char *file) {
    static const char *const folders[] = {"/site-packages/",
                                          "/dist-packages/",
                                          "/lib/python",
                                          "/include/c++/",
                                          "/include/thrust/",
                                          "/include/cub/",
                                          "/include/cuda/",
                                          "/include/rmm/",
                                          "/usr/include/",
                                          "/usr/local/cuda",
                                          "/libcudacxx/",
                                          "/opt/nvidia/hpc_",
                                          NULL};
    return holds_any(file, folders) || *file == '<';
}

static bool is_installed(const char *object) {
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/usr/local/cuda",
                                          "/opt/nvidia/hpc_", NULL};
    static const char *const begins[] = {"libcublas",   "libcudnn",    "libcufft", "libcurand",
                                         "libcusolver", "libcusparse", "libnccl",  "libnpp",
                                         "libnvjpeg",   "libcutensor", "librmm",   "libstdc++"};
    if (begins_with(object, "/usr/lib") || begins_with(object, "/lib") ||
        holds_any(object, folders))
        return true;
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (begins_with(bfc_file_name(object), begins[i]))
            return true;
    return bfc_who_hands_on(object);
}

/* Returns the part of a demangled function's name that begins with the function's own qualified
 * name. The demangled name of a function made from a template begins with its return type, which is
 * skipped. */
static const char *skip_return_type(const char *function) {
    const char *name = function;
    unsigned depth = 0;
    for (const char *at = function; *at; at++) {
        if (begins_with(at, "(anonymous namespace)") || begins_with(at, "{lambda(")) {
            at = strchr(at, ')');
            if (!at)
                break;
        } else if (*at == '<')
            depth++;
        else if (*at == '>' && depth)
            depth--;
        else if (depth == 0 && (*at == '(' || begins_with(at, "operator")))
            break;
        else if (depth == 0 && *at == ' ')
            name = at + 1;
    }
    return name;
}

/* Whether a function is made from a template of a library such as Thrust. Such functions are
 * compiled into the user's program, but are not the user's code. */
static bool is_of_templates(const char *function) {
    static const char *const namespaces[] = {
        "thrust::", "cub::", "cuda::", "std::", "rmm::", "__gnu_cxx::"};
    const char *name = skip_return_type(function);
    for (size_t i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++)
        if (begins_with(name, namespaces[i]))
            return true;
    return false;
}

static bool is_users(const struct who_line *line) {
    return !(line->object && is_installed(line->object)) &&
           !(line->source && is_packaged(line->source)) &&
           !(line->function && line->object && is_of_templates(line->function));
}

/* Returns the innermost line (frame) for which `is_wanted` returns true; NULL: there is none. */
static const struct who_line *find_line(const struct who_line *lines, size_t count,
                                        bool (*is_wanted)(const struct who_line *)) {
    for (size_t i = 0; i < count; i++)
        if (is_wanted(&lines[i]))
            return &lines[i];
    return NULL;
}

static bool is_users_python(const struct who_line *line) {
    return !line->object && is_users(line);
}

static bool is_python(const struct who_line *line) {
    return !line->object;
}

static bool does_more(const struct who_line *line) {
    return !bfc_who_hands_on(line->object);
}

char *who_place(struct who_names *names, const struct bfc_who_site *site, char *text, size_t size) {
    bool (*const ranks[])(const struct who_line *) = {is_users_python, is_python, is_users,
                                                      does_more};
    struct who_line lines[WHO_LINES];
    size_t count = who_stack(names, site, lines, WHO_LINES), used;
    const struct who_line *line = NULL;
    for (size_t i = 0; !line && i < sizeof ranks / sizeof ranks[0]; i++)
        line = find_line(lines, count, ranks[i]);
    text[0] = '\0';
    if (line && !line->object) {
        snprintf(text, size, "%s:%" PRIu64, bfc_file_name(line->source), line->line);
    } else if (line) {
        const struct who_line *caller = line + 1;
        who_line_text(line, text, size);
        used = strlen(text);
        if (caller < lines + count && is_users(caller) && used + 16 < size) {
            used += (size_t)snprintf(text + used, size - used, ", called by ");
            who_line_text(caller, text + used, size - used);
        }
    }
    return text;
}

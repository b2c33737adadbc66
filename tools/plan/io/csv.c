#include "tools/plan/io/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/common/number.h"
#include "planner/common/watch.h"
#include "tools/plan/common/whole_file.h"

enum column { ID, LOWER, UPPER, SIZE, ALIAS, GROUP, SPACE, OFFSET, STREAM, COLUMNS };

static const char *const column_names[COLUMNS] = {"id",    "lower", "upper",  "size",  "alias",
                                                  "group", "space", "offset", "stream"};

#define ROWS_PER_WATCH 4096
#define SHOWN 40 /* how many bytes of a wrong field an error message shows */

struct reader {
    struct lifetimes *lifetimes;
    struct plan_error *error;
    char *at;
    char *end;
    uint32_t line;
    /* for each column: the number of its field in a line, from 0; -1: the file has no such
     * column */
    int place[COLUMNS];
    int fields; /* how many fields the first line has; all other lines must have as many */
    struct names groups;
    struct names streams;
    struct name *aliases; /* for each row: its field "alias"; NULL if the file has no such column */
    uint32_t room;
};

static bool fail_row(struct reader *reader, uint32_t row, const char *what, struct name field,
                     const char *accepted) {
    const int shown = field.length > SHOWN ? SHOWN : (int)field.length;
    return plan_fail(reader->error, "%s: row %u (line %u): %s '%.*s' is not %s",
                     reader->lifetimes->path, row + 1, reader->line, what, shown, field.text,
                     accepted);
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static struct name trim_blanks(char *from, char *to) {
    while (from < to && is_space(*from))
        from++;
    while (to > from && is_space(to[-1]))
        to--;
    return (struct name){from, (size_t)(to - from)};
}

/* Removes the quotes of the quoted field at `from`, in place. Returns the byte after its closing
 * quote; NULL: there is no closing quote. */
static char *unquote_field(char *from, const char *line_end, struct name *field) {
    char *write = from;
    char *read = from + 1;
    for (;;) {
        if (read >= line_end)
            return NULL;
        if (*read == '"' && (read + 1 >= line_end || read[1] != '"'))
            break;
        if (*read == '"')
            read++;
        *write++ = *read++;
    }
    *field = (struct name){from, (size_t)(write - from)};
    return read + 1;
}

/* Splits the line from reader->at to `line_end` into fields, and returns how many; -1: the line is
 * malformed, and reader->error says how. */
static int split_line(struct reader *reader, char *line_end, struct name fields[COLUMNS]) {
    char *at = reader->at;
    for (int count = 0;; count++) {
        if (count == COLUMNS) {
            plan_fail(reader->error, "%s: line %u: more than %d fields", reader->lifetimes->path,
                      reader->line, COLUMNS);
            return -1;
        }
        while (at < line_end && is_space(*at))
            at++;
        char *stop = at;
        if (at < line_end && *at == '"') {
            stop = unquote_field(at, line_end, &fields[count]);
            while (stop && stop < line_end && is_space(*stop))
                stop++;
            if (!stop || (stop < line_end && *stop != ',')) {
                plan_fail(reader->error, "%s: line %u: field %d has a quote that is not closed",
                          reader->lifetimes->path, reader->line, count + 1);
                return -1;
            }
        } else {
            while (stop < line_end && *stop != ',')
                stop++;
            fields[count] = trim_blanks(at, stop);
        }
        if (stop >= line_end)
            return count + 1;
        at = stop + 1;
    }
}

/* Finds the next line from `from` on that is not blank, sets reader->at to its start, and returns
 * its end; NULL: the text has ended. */
static char *next_line(struct reader *reader, char *from) {
    while (from < reader->end) {
        char *line_end = memchr(from, '\n', (size_t)(reader->end - from));
        line_end = !line_end ? reader->end : line_end;
        reader->line++;
        if (trim_blanks(from, line_end).length > 0) {
            reader->at = from;
            return line_end;
        }
        from = line_end + 1;
    }
    return NULL;
}

static int column_of(struct name field) {
    for (int c = 0; c < COLUMNS; c++)
        if (strlen(column_names[c]) == field.length &&
            memcmp(column_names[c], field.text, field.length) == 0)
            return c;
    return -1;
}

static bool read_header(struct reader *reader, char *line_end) {
    const char *path = reader->lifetimes->path;
    struct name fields[COLUMNS];
    memset(reader->place, -1, sizeof reader->place);
    reader->fields = split_line(reader, line_end, fields);
    if (reader->fields < 0)
        return false;
    for (int i = 0; i < reader->fields; i++) {
        const int c = column_of(fields[i]);
        const int shown = fields[i].length > SHOWN ? SHOWN : (int)fields[i].length;
        if (c < 0)
            return plan_fail(reader->error,
                             "%s: header (line %u): unknown column '%.*s'; accepted are id, lower, "
                             "upper, size, alias, group, space, offset, stream",
                             path, reader->line, shown, fields[i].text);
        if (reader->place[c] >= 0)
            return plan_fail(reader->error, "%s: header (line %u): column '%s' occurs twice", path,
                             reader->line, column_names[c]);
        reader->place[c] = i;
    }
    for (int c = ID; c <= SIZE; c++)
        if (reader->place[c] < 0)
            return plan_fail(reader->error,
                             "%s: header (line %u): column '%s' is missing; the first line must "
                             "name the columns id, lower, upper, size",
                             path, reader->line, column_names[c]);
    return true;
}

static bool grow_rows(struct reader *reader) {
    struct lifetimes *lifetimes = reader->lifetimes;
    const uint32_t room = reader->room == 0 ? 1024 : reader->room * 2;
    struct lifetime *rows = realloc(lifetimes->rows, room * sizeof *rows);
    if (!rows)
        return plan_fail_memory(reader->error);
    lifetimes->rows = rows;
    if (reader->place[ALIAS] >= 0) {
        struct name *aliases = realloc(reader->aliases, room * sizeof *aliases);
        if (!aliases)
            return plan_fail_memory(reader->error);
        reader->aliases = aliases;
    }
    reader->room = room;
    return true;
}

/* Returns a row's field in a column; an empty field if the file has no such column. */
static struct name field_of(const struct reader *reader, const struct name *fields, int column) {
    const int place = reader->place[column];
    return place < 0 ? (struct name){"", 0} : fields[place];
}

/* Sets `*number` to the number of a label (of a group or stream) in the table `names`, where it is
 * added if it is new; ROW_NONE for an empty field. False: no memory. */
static bool read_label(struct reader *reader, struct names *names, struct name field,
                       uint32_t *number) {
    bool fresh;
    *number = ROW_NONE;
    if (field.length == 0)
        return true;
    *number = names_add(names, field, &fresh);
    return *number != NAMES_NONE || plan_fail_memory(reader->error);
}

static bool read_times(struct reader *reader, const struct name *fields, struct lifetime *row) {
    const uint32_t number = reader->lifetimes->count;
    const struct name lower = field_of(reader, fields, LOWER);
    const struct name upper = field_of(reader, fields, UPPER);
    const struct name size = field_of(reader, fields, SIZE);
    const char *const time = "a whole number up to 2^63 (9223372036854775808)";
    if (!plan_parse_tick(lower.text, lower.length, &row->birth))
        return fail_row(reader, number, "lower", lower, time);
    if (!plan_parse_tick(upper.text, upper.length, &row->death))
        return fail_row(reader, number, "upper", upper, time);
    if (row->birth >= row->death)
        return fail_row(reader, number, "upper", upper, "above lower");
    if (!plan_parse_u64(size.text, size.length, PLAN_MOST_BYTES, &row->size))
        return fail_row(reader, number, "size", size,
                        "a whole number of bytes from 0 to 2^63 (9223372036854775808)");
    return true;
}

static bool read_constraints(struct reader *reader, const struct name *fields,
                             struct lifetime *row) {
    struct lifetimes *lifetimes = reader->lifetimes;
    const struct name offset = field_of(reader, fields, OFFSET);
    const struct name space = field_of(reader, fields, SPACE);
    if (offset.length > 0 &&
        !plan_parse_u64(offset.text, offset.length, PLAN_MOST_BYTES, &row->pin))
        return fail_row(reader, lifetimes->count, "offset", offset,
                        "empty or a whole number of bytes from 0 to 2^63");
    if (reader->place[ALIAS] >= 0)
        reader->aliases[lifetimes->count] = field_of(reader, fields, ALIAS);
    lifetimes->has_pin = lifetimes->has_pin || row->pin != NOT_PINNED;
    if (reader->place[SPACE] >= 0) {
        bool fresh;
        row->space = names_add(&lifetimes->spaces, space, &fresh);
        if (row->space == NAMES_NONE)
            return plan_fail_memory(reader->error);
    }
    return read_label(reader, &reader->groups, field_of(reader, fields, GROUP), &row->group) &&
           read_label(reader, &reader->streams, field_of(reader, fields, STREAM), &row->stream);
}

static bool add_id(struct reader *reader, struct name id) {
    struct lifetimes *lifetimes = reader->lifetimes;
    bool fresh;
    if (id.length == 0)
        return fail_row(reader, lifetimes->count, "id", id, "a name");
    const uint32_t number = names_add(&lifetimes->ids, id, &fresh);
    if (number == NAMES_NONE)
        return plan_fail_memory(reader->error);
    if (fresh)
        return true;
    char text[ROW_TEXT];
    const int shown = id.length > SHOWN ? SHOWN : (int)id.length;
    return plan_fail(reader->error, "%s: row %u (line %u): id '%.*s' is that of %s too",
                     lifetimes->path, lifetimes->count + 1, reader->line, shown, id.text,
                     lifetimes_row_text(lifetimes, number, text));
}

static bool read_row(struct reader *reader, char *line_end) {
    struct lifetimes *lifetimes = reader->lifetimes;
    struct name fields[COLUMNS];
    const int count = split_line(reader, line_end, fields);
    if (count < 0)
        return false;
    if (count != reader->fields)
        return plan_fail(reader->error, "%s: row %u (line %u): %d fields, the header has %d",
                         lifetimes->path, lifetimes->count + 1, reader->line, count,
                         reader->fields);
    if (lifetimes->count == MOST_ROWS)
        return plan_fail(reader->error, "%s: row %u (line %u): more rows than %u", lifetimes->path,
                         lifetimes->count + 1, reader->line, MOST_ROWS);
    if (lifetimes->count == reader->room && !grow_rows(reader))
        return false;
    struct lifetime row = {.pin = NOT_PINNED, .line = reader->line, .alias = ROW_NONE};
    if (!read_times(reader, fields, &row) || !read_constraints(reader, fields, &row) ||
        !add_id(reader, field_of(reader, fields, ID)))
        return false;
    lifetimes->rows[lifetimes->count++] = row;
    return true;
}

static bool resolve_aliases(struct reader *reader) {
    struct lifetimes *lifetimes = reader->lifetimes;
    for (uint32_t i = 0; reader->aliases && i < lifetimes->count; i++) {
        struct lifetime *row = &lifetimes->rows[i];
        if (reader->aliases[i].length == 0)
            continue;
        const uint32_t other = names_find(&lifetimes->ids, reader->aliases[i]);
        reader->line = row->line;
        if (other == NAMES_NONE)
            return fail_row(reader, i, "alias", reader->aliases[i], "the id of any row");
        row->alias = other == i ? ROW_NONE : other;
        lifetimes->has_alias = lifetimes->has_alias || other != i;
    }
    return true;
}

static void skip_byte_order_mark(struct reader *reader, struct file_text *text) {
    if (text->size >= 3 && memcmp(text->bytes, "\xef\xbb\xbf", 3) == 0)
        reader->at += 3;
}

static bool read_rows(struct reader *reader) {
    char *line_end = next_line(reader, reader->at);
    if (!line_end)
        return plan_fail(reader->error,
                         "%s: line 1: the file is empty; the first line must name the columns id, "
                         "lower, upper, size",
                         reader->lifetimes->path);
    if (!read_header(reader, line_end))
        return false;
    const char *counted = reader->at;
    while ((line_end = next_line(reader, line_end + 1)) != NULL) {
        if (!read_row(reader, line_end))
            return false;
        if (reader->lifetimes->count % ROWS_PER_WATCH == 0) {
            watch_add((uint64_t)(reader->at - counted));
            counted = reader->at;
        }
    }
    return resolve_aliases(reader);
}

bool csv_parse(struct lifetimes *lifetimes, struct file_text *text, const char *path,
               struct plan_error *error) {
    struct lifetimes result = {.path = path, .text = *text};
    struct reader reader = {
        .lifetimes = &result, .error = error, .at = text->bytes, .end = text->bytes + text->size};
    watch_begin(text->size);
    *text = (struct file_text){NULL, 0};
    skip_byte_order_mark(&reader, &result.text);
    const bool good = read_rows(&reader);
    result.has_group = reader.groups.count > 0;
    result.has_stream = reader.streams.count > 1;
    result.visible = result.prefix = result.count;
    names_free(&reader.groups);
    names_free(&reader.streams);
    free(reader.aliases);
    if (!good) {
        lifetimes_free(&result);
        return false;
    }
    lifetimes_seal(&result);
    *lifetimes = result;
    return true;
}

void csv_write_field(FILE *stream, struct name field) {
    if (!memchr(field.text, ',', field.length) && !memchr(field.text, '"', field.length)) {
        fwrite(field.text, 1, field.length, stream);
        return;
    }
    putc('"', stream);
    for (size_t i = 0; i < field.length; i++) {
        if (field.text[i] == '"')
            putc('"', stream);
        putc(field.text[i], stream);
    }
    putc('"', stream);
}

static void write_row(FILE *stream, const struct lifetimes *lifetimes, uint32_t row) {
    char lower[PLAN_TICK_TEXT], upper[PLAN_TICK_TEXT];
    const struct lifetime *r = &lifetimes->rows[row];
    csv_write_field(stream, lifetimes->ids.list[row]);
    fprintf(stream, ",%s,%s,%" PRIu64, plan_tick_print(r->birth, lower),
            plan_tick_print(r->death, upper), r->size);
}

bool csv_write(const struct lifetimes *lifetimes, const uint64_t *offsets, const char *path,
               struct plan_error *error) {
    struct file_writer writer;
    const bool aliases = !offsets && lifetimes->has_alias;
    if (!file_open(&writer, path, error))
        return false;
    watch_begin(lifetimes->visible);
    fprintf(writer.stream, "id,lower,upper,size%s\n",
            offsets   ? ",offset"
            : aliases ? ",alias"
                      : "");
    for (uint32_t i = 0; i < lifetimes->visible; i++) {
        const uint32_t alias = lifetimes->rows[i].alias;
        write_row(writer.stream, lifetimes, i);
        if (offsets)
            fprintf(writer.stream, ",%" PRIu64, offsets[i]);
        if (aliases)
            putc(',', writer.stream);
        if (aliases && alias != ROW_NONE)
            csv_write_field(writer.stream, lifetimes->ids.list[alias]);
        putc('\n', writer.stream);
        if (i % ROWS_PER_WATCH == 0)
            watch_add(ROWS_PER_WATCH);
    }
    return file_close(&writer, error);
}

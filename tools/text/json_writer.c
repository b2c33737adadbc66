#include "tools/text/json_writer.h"

#include <math.h>
#include <string.h>

#include "tools/text/print_text.h"

struct json_writer json_writer_init(FILE *stream) {
    return (struct json_writer){.stream = stream};
}

static void put_text(FILE *stream, const char *text, size_t length) {
    putc('"', stream);
    while (length) {
        size_t step = text_utf8_length(text, length);
        unsigned char c = (unsigned char)*text;
        if (step == 0)
            fputs("\\ufffd", stream);
        else if (c == '"' || c == '\\')
            fprintf(stream, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", stream);
        else if (c < 0x20 || c == 0x7f)
            fprintf(stream, "\\u%04x", c);
        else
            fwrite(text, 1, step, stream);
        text += step ? step : 1;
        length -= step ? step : 1;
    }
    putc('"', stream);
}

static void new_line(struct json_writer *writer) {
    if (!writer->compact)
        fprintf(writer->stream, "\n%*s", writer->depth * 2, "");
}

/* Writes what stands before a value: a comma, a line break and the key, as needed. */
static void begin_value(struct json_writer *writer, const char *key) {
    if (writer->depth) {
        if (writer->filled[writer->depth])
            putc(',', writer->stream);
        writer->filled[writer->depth] = true;
        new_line(writer);
    }
    if (key) {
        put_text(writer->stream, key, strlen(key));
        fputs(writer->compact ? ":" : ": ", writer->stream);
    }
}

static void begin_group(struct json_writer *writer, const char *key, char bracket) {
    begin_value(writer, key);
    putc(bracket, writer->stream);
    writer->filled[++writer->depth] = false;
}

static void end_group(struct json_writer *writer, char bracket) {
    bool filled = writer->filled[writer->depth--];
    if (filled)
        new_line(writer);
    putc(bracket, writer->stream);
    if (writer->depth == 0)
        putc('\n', writer->stream);
}

void json_object(struct json_writer *writer, const char *key) {
    begin_group(writer, key, '{');
}

void json_object_end(struct json_writer *writer) {
    end_group(writer, '}');
}

void json_array(struct json_writer *writer, const char *key) {
    begin_group(writer, key, '[');
}

void json_array_end(struct json_writer *writer) {
    end_group(writer, ']');
}

void json_string(struct json_writer *writer, const char *key, const char *value) {
    json_string_n(writer, key, value, strlen(value));
}

void json_string_n(struct json_writer *writer, const char *key, const char *value, size_t length) {
    begin_value(writer, key);
    put_text(writer->stream, value, length);
}

void json_unsigned(struct json_writer *writer, const char *key, uint64_t value) {
    begin_value(writer, key);
    fprintf(writer->stream, "%llu", (unsigned long long)value);
}

void json_signed(struct json_writer *writer, const char *key, int64_t value) {
    begin_value(writer, key);
    fprintf(writer->stream, "%lld", (long long)value);
}

void json_number(struct json_writer *writer, const char *key, double value) {
    begin_value(writer, key);
    if (isfinite(value))
        /* the programs never set LC_NUMERIC, so the number has a decimal point, as JSON needs */
        fprintf(writer->stream, "%.6g", value);
    else
        fputs("null", writer->stream);
}

void json_boolean(struct json_writer *writer, const char *key, bool value) {
    begin_value(writer, key);
    fputs(value ? "true" : "false", writer->stream);
}

void json_null(struct json_writer *writer, const char *key) {
    begin_value(writer, key);
    fputs("null", writer->stream);
}

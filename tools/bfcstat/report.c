/*
 * bfcstat report: one self-contained web page of a recording.
 *
 * The page is report.html with the recording's lines in its middle; a script in the page draws
 * them. Every '<' in a line is written as \u003c, which is the same in JSON, so nothing in a
 * recording can end the script element that holds it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report_page.h"
#include "tools/bfcstat/bfcstat.h"

static const char placeholder[] = "@RECORDING@";

static int complain(const char *name, const char *what) {
    fprintf(stderr, "bfcstat: %s: %s\n", name, what);
    return REFUSED;
}

static void put_line(FILE *page, const char *line) {
    for (; *line; line++)
        if (*line == '<')
            fputs("\\u003c", page);
        else
            putc(*line, page);
}

/* A whole line is an object; the last one of a killed recorder may be cut off. */
static bool is_whole(const char *line, size_t length) {
    return length > 2 && line[0] == '{' && line[length - 1] == '\n' && line[length - 2] == '}';
}

/*
 * Copies the complete lines; returns how many were incomplete, or -1 if the file is no recording.
 */
static long copy_lines(FILE *recording, FILE *page) {
    char *line = NULL;
    size_t room = 0;
    long left_out = 0;
    bool first = true;
    ssize_t length;
    while ((length = getline(&line, &room, recording)) > 0) {
        if (first && strncmp(line, "{\"type\":\"start\"", 15) != 0) {
            left_out = -1;
            break;
        }
        first = false;
        if (is_whole(line, (size_t)length))
            put_line(page, line);
        else
            left_out++;
    }
    free(line);
    return first ? -1 : left_out;
}

static int write_page(const struct request *request, FILE *recording, FILE *page) {
    const char *middle = strstr(report_page, placeholder);
    fwrite(report_page, 1, (size_t)(middle - report_page), page);
    long left_out = copy_lines(recording, page);
    fputs(middle + sizeof placeholder - 1, page);
    if (left_out < 0)
        return complain(request->target, "not a recording: bfcstat record makes them");
    if (left_out > 0)
        fprintf(stderr, "bfcstat: %s: %ld incomplete lines were left out\n", request->target,
                left_out);
    return SHOWN;
}

int run_report(const struct request *request) {
    FILE *recording = fopen(request->target, "re");
    if (!recording)
        return complain(request->target, strerror(errno));
    FILE *page = fopen(request->output, "we");
    if (!page) {
        fclose(recording);
        return complain(request->output, strerror(errno));
    }
    int status = write_page(request, recording, page);
    bool failed = ferror(page);
    failed |= fclose(page) != 0;
    fclose(recording);
    if (status != SHOWN)
        remove(request->output);
    return failed ? complain(request->output, strerror(errno)) : status;
}

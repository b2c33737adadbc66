#include "tools/report/page.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report_page.h"

static const char placeholder[] = "@RECORDING@";

void report_begin(FILE *page) {
    fwrite(report_page, 1, (size_t)(strstr(report_page, placeholder) - report_page), page);
}

void report_end(FILE *page) {
    fputs(strstr(report_page, placeholder) + sizeof placeholder - 1, page);
}

void report_beside(FILE *page) {
    fputs("</script>\n<script type=\"text/plain\" class=\"recording\">\n", page);
}

void report_put(const char *lines, FILE *page) {
    for (; *lines; lines++)
        if (*lines == '<')
            fputs("\\u003c", page);
        else
            putc(*lines, page);
}

/* Whether the line is a whole object of JSON. The last line of a recording may be cut off if
 * bfcstat record was killed. */
static bool is_whole(const char *line, size_t length) {
    return length > 2 && line[0] == '{' && line[length - 1] == '\n' && line[length - 2] == '}';
}

long report_copy(FILE *recording, FILE *page) {
    char *line = NULL;
    size_t room = 0;
    long left_out = 0;
    bool first = true;
    ssize_t length;
    while (left_out >= 0 && (length = getline(&line, &room, recording)) > 0) {
        if (first && strncmp(line, "{\"type\":\"start\"", 15) != 0)
            left_out = -1;
        else if (is_whole(line, (size_t)length))
            report_put(line, page);
        else
            left_out++;
        first = false;
    }
    free(line);
    return first ? -1 : left_out;
}

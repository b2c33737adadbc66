#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/text/print_text.h"

void text_wrap(const char *words, unsigned indent, unsigned width, FILE *stream) {
    unsigned column = 0;
    for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
        unsigned length = (unsigned)strcspn(words, " ");
        if (column > indent && column + 1 + length > width) {
            putc('\n', stream);
            column = 0;
        }
        unsigned blanks = column == 0 ? indent : 1;
        fprintf(stream, "%*s%.*s", (int)blanks, "", (int)length, words);
        column += blanks + length;
        words += length;
    }
    putc('\n', stream);
}

unsigned text_width(FILE *stream, unsigned otherwise) {
    struct winsize size;
    bool known = isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0;
    return known && size.ws_col ? size.ws_col : otherwise;
}

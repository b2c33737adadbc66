#include "tools/plan/cli/command.h"

#include <stdarg.h>
#include <stdio.h>

int command_fail(const struct plan_error *error) {
    /* If the text is empty, the program bfcplan-import has printed the error itself. */
    if (error->text[0] != '\0')
        fprintf(stderr, "bfcplan: %s\n", error->text);
    return EXIT_FAILED;
}

int command_misuse(const char *format, ...) {
    va_list list;
    fputs("bfcplan: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputs(" (see bfcplan --help)\n", stderr);
    return EXIT_USAGE;
}

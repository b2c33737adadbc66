/*
 * Finds the source file and line of an address in an ELF file, by debug information in the file or
 * in the system's folder for it (by build id). The library libdw reads the debug information. It is
 * loaded when it is first needed; where it is not installed, or the headers were missing when this
 * was built, no lines are found.
 *
 * Thread-safety: one thread at a time.
 */
#ifndef BFC_TOOLS_SOURCE_LINES_H
#define BFC_TOOLS_SOURCE_LINES_H

#include <stddef.h>
#include <stdint.h>

struct source_lines;

/* A line of source code. The texts are valid until source_lines_close. */
struct source_line {
    const char *function; /* name of the function, demangled; NULL: not known */
    const char *file;
    uint64_t line;
};

/* Opens an ELF file to find source lines in it. NULL: it has no debug information, or cannot be
 * read. */
struct source_lines *source_lines_open(const char *path);
void source_lines_close(struct source_lines *lines);

/*
 * Points `*found` at the source lines of a virtual address (as the file's headers count addresses):
 * first the lines in functions that the compiler has inlined there, innermost first, and last the
 * line in the function that contains them. Returns how many; 0: none is known.
 */
size_t source_lines_find(struct source_lines *lines, uint64_t address,
                         const struct source_line **found);

#endif

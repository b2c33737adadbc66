/*
 * Finds the source file and line of an address in an ELF file, by debug information in the file or
 * in the system's folder for it (by build id). The library libdw does the work, and is opened at
 * run time: where it is not installed, or these programs were built without its headers, nothing is
 * found.
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
    const char *function; /* NULL: not known; C++ names are demangled */
    const char *file;
    uint64_t line;
};

/* Opens an ELF file. NULL: no lines can be found in it. */
struct source_lines *source_lines_open(const char *path);
void source_lines_close(struct source_lines *lines);

/*
 * Points `found` at the lines that a virtual address (as the file's headers have it) belongs to:
 * first those of functions that are inlined there, innermost first, at last that of the function
 * that contains them. Returns their number; 0: none is known.
 */
size_t source_lines_find(struct source_lines *lines, uint64_t address,
                         const struct source_line **found);

#endif

/*
 * Finds the names of functions in ELF files, by .symtab, or by .dynsym if a file was stripped.
 *
 * Files are not trusted: tables that lie outside the file are left out.
 * Thread-safety: one thread at a time for one `struct symbols`.
 */
#ifndef BFC_TOOLS_SYMBOLS_H
#define BFC_TOOLS_SYMBOLS_H

#include <stdint.h>

struct symbols;

/* Opens an ELF file of this machine's word size; NULL: it cannot be read, or has no functions'
 * names. */
struct symbols *symbols_open(const char *path);
void symbols_close(struct symbols *symbols);

/*
 * The name of the function that contains a virtual address (as the file's headers have it), and the
 * distance from its start; NULL: there is none. C++ names are demangled if the C++ library is
 * installed. Valid until symbols_close.
 */
const char *symbols_find(struct symbols *symbols, uint64_t address, uint64_t *distance);

/* Returns a C++ name as people write it, to be freed with free(); NULL: it is no C++ name, or the
 * C++ library, which is opened for the first such name, is not installed. */
char *symbols_demangle(const char *name);

#endif

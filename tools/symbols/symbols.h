/*
 * Finds the names of functions in ELF files, from the symbol table .symtab, or from .dynsym if the
 * file was stripped.
 *
 * Files are not trusted: tables that do not lie within the file are ignored.
 *
 * Thread-safety: one thread at a time for one `struct symbols`.
 */
#ifndef BFC_TOOLS_SYMBOLS_H
#define BFC_TOOLS_SYMBOLS_H

#include <stdint.h>

struct symbols;

/* Opens an ELF file of this machine's word size. NULL: it cannot be read, or has no names of
 * functions. */
struct symbols *symbols_open(const char *path);
void symbols_close(struct symbols *symbols);

/*
 * Returns the name of the function that contains a virtual address (as the file's headers count
 * addresses), and sets `*distance` to the address's distance from the start of the function; NULL:
 * there is none. Names of C++ are demangled if the C++ library is installed. The name is valid
 * until symbols_close.
 */
const char *symbols_find(struct symbols *symbols, uint64_t address, uint64_t *distance);

/* Returns a C++ name as it is written in source code, to be freed with free(). NULL: it is no C++
 * name, or the C++ library, which does the work and is loaded when first needed, is not
 * installed. */
char *symbols_demangle(const char *name);

#endif

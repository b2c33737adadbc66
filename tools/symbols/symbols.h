/*
 * Names of functions in ELF files: .symtab, or .dynsym where a file was stripped.
 *
 * Files are not trusted: what lies outside them, or is not sorted as it should be, is left out.
 * Thread-safety: one thread at a time for one `struct symbols`.
 */
#ifndef BFC_TOOLS_SYMBOLS_H
#define BFC_TOOLS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct symbols;

/* Reads a file of this machine's kind; NULL: it cannot be read, or has no functions' names. */
struct symbols *symbols_open(const char *path);
void symbols_close(struct symbols *symbols);

/* The function that holds an address of the file (a virtual one, as its headers have it), with the
 * distance from its begin; NULL: none does. Names of C++ are as people write them where the C++
 * library is installed. Valid until symbols_close. */
const char *symbols_find(struct symbols *symbols, uint64_t address, uint64_t *distance);

#endif

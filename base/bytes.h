/* Numbers of bytes as people read them. */
#ifndef BFC_BASE_BYTES_H
#define BFC_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#define BFC_BYTES_TEXT 24u /* bytes that suffice for the text below */

/*
 * "512 B", "1.50 KiB", "139 GiB": three significant digits, binary units. Cuts off at `size` bytes,
 * the NUL among them; returns `text`. Thread-safe.
 */
char *bfc_bytes_text(uint64_t bytes, char *text, size_t size);

/* The same as an argument of a call, valid until the block around it ends. */
#define BFC_BYTES(bytes) bfc_bytes_text(bytes, (char[BFC_BYTES_TEXT]){0}, BFC_BYTES_TEXT)

#endif

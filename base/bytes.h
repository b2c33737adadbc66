/* Numbers of bytes as text for people. */
#ifndef BFC_BASE_BYTES_H
#define BFC_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BFC_BYTES_TEXT 24u /* the size of the longest text from bfc_bytes_text, with the NUL */

/* Writes a number of bytes with three significant digits and a binary unit, as "512 B", "1.50 KiB"
 * or "139 GiB". Writes at most `size` bytes, with the NUL; returns `text`. Thread-safe. */
char *bfc_bytes_text(uint64_t bytes, char *text, size_t size);

/* Writes the exact number of bytes, in a form that bfc_bytes_parse reads: as a whole number of the
 * largest unit (K, M, G, T) that divides it. Writes at most `size` bytes, with the NUL. */
void bfc_bytes_print(uint64_t bytes, char *text, size_t size);

/* A number of bytes as text, such as "1.50 KiB" (bfc_bytes_text). The text is in an array that is
 * valid until the enclosing block of code ends. */
#define BFC_BYTES(bytes) bfc_bytes_text(bytes, (char[BFC_BYTES_TEXT]){0}, BFC_BYTES_TEXT)

/*
 * Parses a size, written as all options and variables accept it: decimal digits; then perhaps a
 * unit, K, M, G or T in either case, for 2^10, 2^20, 2^30 or 2^40 bytes, with or without an i; then
 * perhaps a B, which changes nothing. 2G, 2gb and 2GiB are the same size. A blank may stand before
 * the unit, as in bfcstat's output. A number with a unit may have a fraction (2.5G), which is
 * rounded down to bytes. A sign is not accepted. False: the text is anything else, or the size is
 * above `most`; then `*bytes` is unchanged. Does not touch errno. Thread-safe.
 */
bool bfc_bytes_parse(const char *text, uint64_t most, uint64_t *bytes);

/* Returns what a noun ends with after such a number. */
static inline const char *bfc_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

#endif

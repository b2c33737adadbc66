/* Writes parts of a whole as percentages for people. */
#ifndef BFC_BASE_PERCENTAGE_H
#define BFC_BASE_PERCENTAGE_H

#include <stddef.h>

#define BFC_SHARE_TEXT 16u /* the size of the longest text from bfc_share_text, with the NUL */

/*
 * Writes a part of a whole as a percentage: "99.8 %" for 0.998. A part between 0 and 1 is never
 * rounded to 0 or 100 %, but written as "<0.1 %" or ">99.9 %". A caller whose whole is 0 passes a
 * negative `share`, which is written as "-". Writes at most `size` bytes, with the NUL; returns
 * `text`. Thread-safe.
 */
char *bfc_share_text(double share, char *text, size_t size);

#endif

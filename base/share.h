/* Writes shares of a whole as text for people. */
#ifndef BFC_BASE_SHARE_H
#define BFC_BASE_SHARE_H

#include <stddef.h>

#define BFC_SHARE_TEXT 16u /* bytes that suffice for the text below */

/*
 * "99.8 %" of 0.998. What is not quite nothing, or not quite all, is not rounded to it: "<0.1 %",
 * ">99.9 %". Below 0, where there is nothing to share out: "-". Cuts off at `size` bytes, the NUL
 * among them; returns `text`. Thread-safe.
 */
char *bfc_share_text(double share, char *text, size_t size);

#endif

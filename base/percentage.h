/* Writes shares of a whole as text for people. */
#ifndef BFC_BASE_PERCENTAGE_H
#define BFC_BASE_PERCENTAGE_H

#include <stddef.h>

#define BFC_SHARE_TEXT 16u /* the bytes that the text of bfc_share_text needs at most */

/*
 * Writes a share as a percentage: "99.8 %" for 0.998. A share between 0 and 1 is never rounded to
 * nothing or to all, but written as "<0.1 %" or ">99.9 %". A negative share means that there is
 * nothing to share out, and is written as "-". Writes at most `size` bytes, with the NUL; returns
 * `text`. Thread-safe.
 */
char *bfc_share_text(double share, char *text, size_t size);

#endif

/*
 * A text for people on standard error that is longer than a line.
 *
 * It is written at once, so that texts of several processes do not mix; what does not fit is cut
 * off. The memory is requested from the kernel, since the thread may be inside the program's
 * malloc. One message is for one thread at a time.
 */
#ifndef BFC_INTERPOSE_MESSAGE_H
#define BFC_INTERPOSE_MESSAGE_H

#include <stddef.h>

#include "base/compiler.h"

struct bfc_message {
    size_t size, used; /* bytes that the text has room for, and the text's length in bytes */
    char text[];
};

/* Makes an empty message with room for `size` bytes of text. NULL: the host has no memory. */
struct bfc_message *bfc_message_begin(size_t size);

void bfc_message_add(struct bfc_message *message, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds a line that says which rank of a job this process is, if its launcher has numbered it. */
void bfc_message_add_rank(struct bfc_message *message);

/* Writes the message to standard error, and frees its memory. */
void bfc_message_end(struct bfc_message *message);

#endif

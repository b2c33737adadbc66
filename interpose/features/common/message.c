/* Texts of several lines for standard error. */
#include "interpose/features/common/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "interpose/config/launcher_ranks.h"
#include "interpose/host/quiet.h"
#include "interpose/host/scratch.h"

struct bfc_message *bfc_message_begin(size_t size) {
    struct bfc_message *message = bfc_scratch_begin(sizeof *message + size);
    if (message)
        message->size = size;
    return message;
}

void bfc_message_add(struct bfc_message *message, const char *format, ...) {
    va_list arguments;
    size_t room = message->size - message->used;
    va_start(arguments, format);
    int length = vsnprintf(message->text + message->used, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        message->used += (size_t)length < room ? (size_t)length : room - 1;
}

void bfc_message_add_rank(struct bfc_message *message) {
    struct bfc_ranks ranks;
    bfc_ranks_read(&ranks, getenv);
    if (ranks.rank < 0)
        return;
    bfc_message_add(message, "  rank         %d", (int)ranks.rank);
    if (ranks.ranks >= 0)
        bfc_message_add(message, " of %d", (int)ranks.ranks);
    bfc_message_add(message, ranks.job[0] ? ", job %s\n" : "%s\n", ranks.job);
}

/* Names of files and tags may contain control characters, which a terminal would obey. */
static void make_printable(char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\n')
            text[i] = '?';
}

void bfc_message_end(struct bfc_message *message) {
    make_printable(message->text, message->used);
    bfc_quiet_write(message->text, message->used);
    bfc_scratch_end(message, sizeof *message + message->size);
}
